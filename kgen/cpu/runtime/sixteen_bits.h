// What cuda_fp16.h and cuda_bf16.h have in common: numbers of 16 bits that convert to and from
// float.
#pragma once

#include <cstdint>

namespace kgen_cpu {

inline uint32_t bits_of(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline float float_of(uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

constexpr uint32_t SIGN = 0x80000000u;
constexpr uint32_t FLOAT_INFINITY = 0x7f800000u;
// The NaN that conversions give.
constexpr uint16_t NARROW_NAN = 0x7fff;

// The bits without the `count` lowest ones, rounded to nearest, ties to even.
inline uint32_t rounded_bits(uint32_t bits, int count) {
    const uint32_t is_odd = bits >> count & 1;
    return (bits + (1u << (count - 1)) - 1 + is_odd) >> count;
}

// The number of a narrow type that is no larger than the value: its bits count up with it.
template <class Narrow>
Narrow toward_zero(float value) {
    Narrow narrow = value;
    if ((bits_of(narrow) & ~SIGN) > (bits_of(value) & ~SIGN) && value == value) --narrow.bits;
    return narrow;
}

}  // namespace kgen_cpu
