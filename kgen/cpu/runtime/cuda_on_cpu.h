// Makes a `.cu` compile as C++17, unmodified. Included before it by the wrapper that kgen writes.
#pragma once

// First, and before the macros below, so that they cannot meet the standard headers; the includes
// of the `.cu` then do nothing.
#include <math.h>

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>

#define __host__
#define __device__
#define __constant__
// Not inlined into its caller in the kernel table, which would compile it twice.
#define __global__ __attribute__((noinline))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

// The threads of a block are fibers of one OS thread, so what an OS thread owns is what a block
// shares. `thread_local` is also legal for arrays inside functions and for extern declarations.
// `used` says that others write to it too (the poison before each block does): without it, an array
// to which only zeros are stored could be taken for a constant.
#ifdef KGEN_CPU_OBSERVING
// Far apart, so that an index past the end of one array does not hit the next one.
#define __shared__ __attribute__((used, aligned(kgen_cpu::SHARED_ALIGNMENT))) thread_local
#else
#define __shared__ __attribute__((used)) thread_local
#endif

#include "cuda_math.h"
#include "cuda_memory.h"
#include "cuda_sync.h"
#include "cuda_types.h"

// CUDA code writes `__shared__ alignas(16)`, and C++ has alignas in front of thread_local only. So
// it takes numbers here, no types.
#define alignas(bytes) __attribute__((aligned(bytes)))
