// CUDA's vector types, with CUDA's alignments: the alignment is what makes a misaligned float4
// access a fault that the compiler's -fsanitize=alignment can see.
#pragma once

#ifdef __clang__
// Clang checks the alignment of what it accesses member by member or by calling a function, but not
// of what it copies as a block of bytes. A member with a copy function of its own, which takes no
// space, makes it call one.
namespace kgen_cpu {
struct CopiedByCall {
    CopiedByCall() = default;
    CopiedByCall(const CopiedByCall&) {}
    CopiedByCall& operator=(const CopiedByCall&) { return *this; }
};
}  // namespace kgen_cpu
#define KGEN_CPU_COPIED_BY_CALL [[no_unique_address]] kgen_cpu::CopiedByCall copied_by_call;
#else
#define KGEN_CPU_COPIED_BY_CALL
#endif

#define KGEN_CPU_VECTOR_TYPES(T, NAME)                                 \
    struct alignas(2 * sizeof(T)) NAME##2 {                            \
        T x, y;                                                        \
        KGEN_CPU_COPIED_BY_CALL                                        \
    };                                                                 \
    struct NAME##3 {                                                   \
        T x, y, z;                                                     \
        KGEN_CPU_COPIED_BY_CALL                                        \
    };                                                                 \
    struct alignas(4 * sizeof(T)) NAME##4 {                            \
        T x, y, z, w;                                                  \
        KGEN_CPU_COPIED_BY_CALL                                        \
    };                                                                 \
    inline NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }         \
    inline NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; } \
    inline NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }

KGEN_CPU_VECTOR_TYPES(float, float)
KGEN_CPU_VECTOR_TYPES(int, int)
KGEN_CPU_VECTOR_TYPES(unsigned, uint)

static_assert(sizeof(float3) == 12 && sizeof(float4) == 16 && sizeof(int2) == 8);

#undef KGEN_CPU_VECTOR_TYPES
#undef KGEN_CPU_COPIED_BY_CALL

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

// Set by the scheduler before a thread runs. `__thread` and not `thread_local`: no wrapper function
// that asks for a dynamic initialiser stands between a kernel and its index. Constants, as in CUDA:
// no store of the kernel makes the compiler read them again.
extern const __thread uint3 threadIdx;
extern const __thread uint3 blockIdx;
extern const __thread dim3 blockDim;
extern const __thread dim3 gridDim;

constexpr int warpSize = 32;
