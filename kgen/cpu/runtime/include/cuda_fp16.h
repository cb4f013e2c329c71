// Numbers of 16 bits with 5 of them for the exponent, and their conversions, true to the bit.
#pragma once

#include "../sixteen_bits.h"

namespace kgen_cpu {

// The exponents of float and of such a number are this far apart.
constexpr uint32_t HALF_BIAS = (127 - 15) << 10;
constexpr int HALF_CUT = 23 - 10;  // bits of a float's fraction that it lacks

inline float half_to_float(uint16_t half) {
    const uint32_t sign = (half & 0x8000u) << 16;
    const uint32_t magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00u) return float_of(sign | FLOAT_INFINITY | magnitude << HALF_CUT);
    if (magnitude >= 0x0400u) return float_of(sign | (magnitude + HALF_BIAS) << HALF_CUT);
    const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
    return sign ? -subnormal : subnormal;
}

inline uint16_t half_from_float(float value) {
    const uint32_t bits = bits_of(value);
    const uint32_t magnitude = bits & ~SIGN;
    const auto sign = static_cast<uint16_t>((bits & SIGN) >> 16);
    if (magnitude > FLOAT_INFINITY) return NARROW_NAN;
    if (magnitude >= bits_of(65520.0f)) return sign | 0x7c00u;
    if (magnitude < bits_of(0x1p-14f)) {
        // Half a unit above 1/2 a float's last place is that of a subnormal number.
        const uint32_t sum = bits_of(0.5f + float_of(magnitude));
        return static_cast<uint16_t>(sign | (sum - bits_of(0.5f)));
    }
    return static_cast<uint16_t>(sign | (rounded_bits(magnitude, HALF_CUT) - HALF_BIAS));
}

}  // namespace kgen_cpu

struct __half {
    uint16_t bits;

    __half() = default;
    __half(float value) : bits(kgen_cpu::half_from_float(value)) {}
    operator float() const { return kgen_cpu::half_to_float(bits); }
};

inline float __half2float(__half value) { return value; }
inline __half __float2half(float value) { return value; }
inline __half __float2half_rn(float value) { return value; }
inline __half __float2half_rz(float value) { return kgen_cpu::toward_zero<__half>(value); }
