// Device math that the C library lacks. Approximate functions keep the shape of the hardware's
// error, so that a kernel which is wrong because of them is wrong here too.
#pragma once

#include <math.h>

#include <cmath>
#include <type_traits>

namespace kgen_cpu {

template <class To, class From>
inline To bit_cast(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

// A NaN counts as missing, as in fmaxf and fminf, which the compiler does not inline.
inline float larger(float a, float b) { return b != b || a > b ? a : b; }

inline float smaller(float a, float b) { return b != b || a < b ? a : b; }

// CUDA's min and max also take mixed operands, and convert as a binary operator would.
template <class A, class B>
using Arithmetic =
    std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>, std::common_type_t<A, B>>;

}  // namespace kgen_cpu

// <cmath> is included above: it takes such macros back.
#define fmaxf(a, b) kgen_cpu::larger(a, b)
#define fminf(a, b) kgen_cpu::smaller(a, b)

inline unsigned __float_as_uint(float value) { return kgen_cpu::bit_cast<unsigned>(value); }
inline int __float_as_int(float value) { return kgen_cpu::bit_cast<int>(value); }
inline float __uint_as_float(unsigned bits) { return kgen_cpu::bit_cast<float>(bits); }
inline float __int_as_float(int bits) { return kgen_cpu::bit_cast<float>(bits); }

inline long long __double_as_longlong(double value) { return kgen_cpu::bit_cast<long long>(value); }
inline double __longlong_as_double(long long bits) { return kgen_cpu::bit_cast<double>(bits); }

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }

// lg2.approx and what is made of it.
inline float __log2f(float x) { return log2f(x); }
inline float __logf(float x) { return log2f(x) * 0.6931471805599453f; }

// ex2.approx(x * log2(e)): the rounding of the product grows with |x|.
inline float __expf(float x) { return exp2f(x * 1.4426950408889634f); }

// As the CUDA guide documents it: 0 for 2^126 < |y| < 2^128, and NaN there when x is infinite.
inline float __fdividef(float x, float y) {
    const float magnitude = fabsf(y);
    return magnitude > 0x1p126f && magnitude < INFINITY ? x * 0.0f : x / y;
}

template <class A, class B>
kgen_cpu::Arithmetic<A, B> max(A a, B b) {
    using T = kgen_cpu::Arithmetic<A, B>;
    if constexpr (std::is_floating_point_v<T>) return fmax(T(a), T(b));
    else return T(a) < T(b) ? T(b) : T(a);
}

template <class A, class B>
kgen_cpu::Arithmetic<A, B> min(A a, B b) {
    using T = kgen_cpu::Arithmetic<A, B>;
    if constexpr (std::is_floating_point_v<T>) return fmin(T(a), T(b));
    else return T(b) < T(a) ? T(b) : T(a);
}
