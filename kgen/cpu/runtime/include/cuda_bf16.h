// Numbers of 16 bits with 8 of them for the exponent, and their conversions, true to the bit.
#pragma once

#include "../sixteen_bits.h"

namespace kgen_cpu {

inline float bfloat16_to_float(uint16_t number) {
    return float_of(static_cast<uint32_t>(number) << 16);
}

inline uint16_t bfloat16_from_float(float value) {
    const uint32_t bits = bits_of(value);
    if ((bits & ~SIGN) > FLOAT_INFINITY) return NARROW_NAN;
    return static_cast<uint16_t>(rounded_bits(bits, 16));
}

}  // namespace kgen_cpu

struct __nv_bfloat16 {
    uint16_t bits;

    __nv_bfloat16() = default;
    __nv_bfloat16(float value) : bits(kgen_cpu::bfloat16_from_float(value)) {}
    operator float() const { return kgen_cpu::bfloat16_to_float(bits); }
};

inline float __bfloat162float(__nv_bfloat16 value) { return value; }
inline __nv_bfloat16 __float2bfloat16(float value) { return value; }
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return value; }
inline __nv_bfloat16 __float2bfloat16_rz(float value) {
    return kgen_cpu::toward_zero<__nv_bfloat16>(value);
}
