// softmax_v3: one block per row, three passes, exponentials kept in registers, two levels of
// shuffles
//
//   y[r][c] = exp(x - row_max) / row_sum
//   with x = x[r][c], row_max the largest x of row r and row_sum the sum of its exp(x - row_max)
//   x and y are rows x cols, float32, row-major.
//
// variant   v3
// spec      op=softmax dtype=float32 out_dtype=float32 target=device threads_per_row=auto
//           rows_at_once=1 row_split=none blocks_per_row=1 row_order=interleaved row_loop=once
//           row_io=direct next_row=none topology=two_level merge=separate update=three_pass
//           cache=exps_registers vec_size=1 vec_scans=none unaligned=scalar_row loads=plain
//           stores=plain prefetch=false items_per_thread=16 trip=static tile_size=auto
//           threads_per_block=256 grid_blocks=auto min_blocks_per_sm=auto exp=expf
//           normalize=reciprocal static_cols=auto
// parent    v2: cache none -> exps_registers
// requires  rows >= 1, 1 <= cols <= 4096, x and y aligned to 4 bytes
// launch    grid = rows, block = 256
//           dynamic shared memory = 0 bytes
// rebuild   kgen build --variant v3
//           (kgen 0.1.0, templates 83daa7fc)

#include <cfloat>
#include <cmath>
#include <cstddef>

constexpr int THREADS_PER_BLOCK = 256;
constexpr int WARP_SIZE = 32;
constexpr int WARPS_PER_BLOCK = THREADS_PER_BLOCK / WARP_SIZE;
constexpr int ITEMS_PER_THREAD = 16;
constexpr unsigned WHOLE_WARP = 0xffffffffu;

// The reductions of a row: how they combine two values, and the value of no elements.
struct Max {
    static __device__ float identity() { return -FLT_MAX; }
    static __device__ float combine(float a, float b) { return fmaxf(a, b); }
};

struct Sum {
    static __device__ float identity() { return 0.0f; }
    static __device__ float combine(float a, float b) { return a + b; }
};

// Every lane gets the value of its group of WIDTH neighbours; `lanes` are those that take part.
template <typename Op, int WIDTH>
__device__ __forceinline__ float warp_reduce(float value, unsigned lanes) {
#pragma unroll
    for (int offset = WIDTH / 2; offset > 0; offset /= 2) {
        value = Op::combine(value, __shfl_xor_sync(lanes, value, offset));
    }
    return value;
}

// One array for all reductions of a kernel.
__device__ __forceinline__ float* shared_values() {
    __shared__ float values[WARPS_PER_BLOCK];
    return values;
}

// Each warp reduces by shuffles, then the row's first warp reduces the warps' results.
template <typename Op>
__device__ __forceinline__ float row_reduce(float value) {
    float* warp_values = shared_values();
    const int lane = threadIdx.x % WARP_SIZE;
    const int warp = threadIdx.x / WARP_SIZE;

    value = warp_reduce<Op, WARP_SIZE>(value, WHOLE_WARP);
    if (lane == 0) warp_values[warp] = value;
    __syncthreads();  // every warp's value is visible
    if (warp == 0) {
        value = lane < WARPS_PER_BLOCK ? warp_values[lane] : Op::identity();
        value = warp_reduce<Op, WARPS_PER_BLOCK>(value, WHOLE_WARP);
        if (lane == 0) warp_values[0] = value;
    }
    __syncthreads();  // the row's value is visible
    return warp_values[0];
}

// This thread's part of the row. Columns past the end read as -inf, and exp(-inf - m) adds nothing.
__device__ __forceinline__ void load_row(float (&values)[ITEMS_PER_THREAD],
    const float* __restrict__ x, int cols) {
#pragma unroll
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
        const int c = threadIdx.x + i * THREADS_PER_BLOCK;
        values[i] = c < cols ? x[c] : -INFINITY;
    }
}

// The slots go back to the columns that load_row took them from.
__device__ __forceinline__ void store_row(const float (&values)[ITEMS_PER_THREAD],
    float* __restrict__ y, int cols) {
#pragma unroll
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
        const int c = threadIdx.x + i * THREADS_PER_BLOCK;
        if (c < cols) y[c] = values[i];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_v3(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int row = blockIdx.x;
    const size_t row_start = static_cast<size_t>(row) * cols;
    const float* x_row = x + row_start;
    float* y_row = y + row_start;
    float values[ITEMS_PER_THREAD];
    load_row(values, x_row, cols);

    // Pass 1: the row's maximum.
    float thread_max = -FLT_MAX;
#pragma unroll
    for (int k = 0; k < ITEMS_PER_THREAD; ++k) {
        thread_max = fmaxf(thread_max, values[k]);
    }
    const float row_max = row_reduce<Max>(thread_max);

    // Pass 2: the sum of the exponentials, each of them kept.
    float thread_sum = 0.0f;
#pragma unroll
    for (int k = 0; k < ITEMS_PER_THREAD; ++k) {
        values[k] = expf(values[k] - row_max);
        thread_sum += values[k];
    }
    __syncthreads();  // all have read the result before the next reduction writes there
    const float row_sum = row_reduce<Sum>(thread_sum);

    // Pass 3: the output, from the exponentials in registers.
    const float inverse_sum = 1.0f / row_sum;
#pragma unroll
    for (int k = 0; k < ITEMS_PER_THREAD; ++k) {
        values[k] = values[k] * inverse_sum;
    }
    store_row(values, y_row, cols);
}
