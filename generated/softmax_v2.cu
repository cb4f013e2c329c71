// softmax_v2: one block per row, three passes, two levels of shuffles
//
//   y[r][c] = exp(x[r][c] - max_r) / sum_c exp(x[r][c] - max_r)
//   x and y are rows x cols, float32, row-major.
//
// variant   v2
// spec      row_map=block topology=two_level merge=separate update=three_pass cache=none vec_size=1
//           vec_scans=none unaligned=scalar_row prefetch=false items_per_thread=auto trip=static
//           tile_size=auto threads_per_block=256 grid_blocks=auto min_blocks_per_sm=auto exp=expf
//           normalize=reciprocal static_cols=auto
// parent    v1: topology tree -> two_level
// requires  rows >= 1, 1 <= cols <= 2147221504, x and y aligned to 4 bytes
// launch    grid = rows, block = 256
//           dynamic shared memory = 0 bytes
// rebuild   kgen build --variant v2
//           (kgen 0.1.0, templates c5d54bb2)

#include <cfloat>
#include <cmath>
#include <cstddef>

constexpr int THREADS_PER_BLOCK = 256;
constexpr int WARP_SIZE = 32;
constexpr int WARPS_PER_BLOCK = THREADS_PER_BLOCK / WARP_SIZE;
constexpr unsigned WHOLE_WARP = 0xffffffffu;

// What row_reduce combines.
struct Max {
    using Value = float;
    static __device__ float identity() { return -FLT_MAX; }
    static __device__ float combine(float a, float b) { return fmaxf(a, b); }
};

struct Sum {
    using Value = float;
    static __device__ float identity() { return 0.0f; }
    static __device__ float combine(float a, float b) { return a + b; }
};

__device__ __forceinline__ float shuffle_down(float value, int offset) {
    return __shfl_down_sync(WHOLE_WARP, value, offset);
}

// Lane 0 gets the whole warp's result, the other lanes partial ones.
template <typename Op>
__device__ __forceinline__ typename Op::Value warp_reduce(typename Op::Value value) {
#pragma unroll
    for (int offset = WARP_SIZE / 2; offset > 0; offset /= 2) {
        value = Op::combine(value, shuffle_down(value, offset));
    }
    return value;
}

// One array for all reductions of a kernel.
template <typename Value>
__device__ __forceinline__ Value* shared_values() {
    __shared__ Value values[WARPS_PER_BLOCK];
    return values;
}

// topology=two_level: each warp reduces by shuffles, then the first warp the warps' results.
// All threads get the result; on return the function may be called again.
template <typename Op>
__device__ __forceinline__ typename Op::Value row_reduce(typename Op::Value value) {
    typename Op::Value* warp_values = shared_values<typename Op::Value>();
    const int lane = threadIdx.x % WARP_SIZE;
    const int warp = threadIdx.x / WARP_SIZE;

    value = warp_reduce<Op>(value);
    if (lane == 0) warp_values[warp] = value;
    __syncthreads();  // every warp's result is visible
    if (warp == 0) {
        value = warp_reduce<Op>(lane < WARPS_PER_BLOCK ? warp_values[lane] : Op::identity());
        if (lane == 0) warp_values[0] = value;
    }
    __syncthreads();  // the row's result is visible
    value = warp_values[0];
    __syncthreads();  // everybody has read before anybody may write again
    return value;
}

// The maximum of this thread's elements. It starts at -FLT_MAX, not -inf: no scan then computes
// (-inf) - (-inf), and a row of -inf still ends as 0 / 0, which is NaN.
__device__ __forceinline__ float thread_max(const float* __restrict__ x, int cols) {
    float m = -FLT_MAX;
    for (int c = threadIdx.x; c < cols; c += THREADS_PER_BLOCK) {
        m = fmaxf(m, x[c]);
    }
    return m;
}

// The sum of exp(x - m) over this thread's elements.
__device__ __forceinline__ float thread_sum(const float* __restrict__ x, int cols, float m) {
    float d = 0.0f;
    for (int c = threadIdx.x; c < cols; c += THREADS_PER_BLOCK) {
        d += expf(x[c] - m);
    }
    return d;
}

// The writing scan: normalise.
__device__ __forceinline__ void write_row(const float* __restrict__ x, float* __restrict__ y,
    int cols, float row_max, float row_sum) {
    const float inverse_sum = 1.0f / row_sum;
    for (int c = threadIdx.x; c < cols; c += THREADS_PER_BLOCK) {
        y[c] = expf(x[c] - row_max) * inverse_sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_v2(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int row = blockIdx.x;
    const size_t row_start = static_cast<size_t>(row) * cols;
    const float* x_row = x + row_start;
    float* y_row = y + row_start;

    // Pass 1: the row's maximum. Pass 2: its sum of exponentials.
    const float row_max = row_reduce<Max>(thread_max(x_row, cols));
    const float row_sum = row_reduce<Sum>(thread_sum(x_row, cols, row_max));

    // Pass 3: normalise.
    write_row(x_row, y_row, cols, row_max, row_sum);
}
