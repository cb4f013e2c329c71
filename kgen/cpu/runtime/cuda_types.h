// CUDA's vector types, with CUDA's alignments: the alignment is what makes a misaligned float4
// access a fault that the compiler's -fsanitize=alignment can see.
#pragma once

#define KGEN_CPU_VECTOR_TYPES(T, NAME)                                                      \
    struct alignas(2 * sizeof(T)) NAME##2 { T x, y; };                                      \
    struct NAME##3 { T x, y, z; };                                                          \
    struct alignas(4 * sizeof(T)) NAME##4 { T x, y, z, w; };                                \
    inline NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }                              \
    inline NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }                      \
    inline NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }

KGEN_CPU_VECTOR_TYPES(float, float)
KGEN_CPU_VECTOR_TYPES(int, int)
KGEN_CPU_VECTOR_TYPES(unsigned, uint)

#undef KGEN_CPU_VECTOR_TYPES

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

// Set by the scheduler before a thread runs. `__thread` and not `thread_local`: no wrapper function
// that asks for a dynamic initialiser stands between a kernel and its index.
extern __thread uint3 threadIdx;
extern __thread uint3 blockIdx;
extern __thread dim3 blockDim;
extern __thread dim3 gridDim;

constexpr int warpSize = 32;
