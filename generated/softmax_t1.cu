// softmax_t1: several blocks per row, one launch per phase, three passes, two levels of shuffles
//
//   y[r][c] = exp(x[r][c] - max_r) / sum_c exp(x[r][c] - max_r)
//   x and y are rows x cols, float32, row-major.
//
// variant   t1
// spec      row_map=grid topology=two_level merge=separate update=three_pass cache=none vec_size=1
//           vec_scans=none unaligned=scalar_row prefetch=false items_per_thread=auto trip=static
//           tile_size=1024 threads_per_block=128 grid_blocks=auto min_blocks_per_sm=auto exp=expf
//           normalize=divide static_cols=auto
// parent    v2: row_map block -> grid, tile_size auto -> 1024, threads_per_block 256 -> 128,
//           normalize reciprocal -> divide
// requires  rows >= 1, 1 <= cols <= 2147221504, x and y aligned to 4 bytes
// launch    softmax_t1_max
//           softmax_t1_sum
//           softmax_t1_write
//           in this order, each with grid = rows * ceil(cols / 1024), block = 128
//           dynamic shared memory = 0 bytes
//           stats: 8 bytes a row, zeroed before every call
// rebuild   kgen build --variant t1
//           (kgen 0.1.0, templates c5d54bb2)

#include <cfloat>
#include <cmath>
#include <cstddef>

constexpr int THREADS_PER_BLOCK = 128;
constexpr int WARP_SIZE = 32;
constexpr int WARPS_PER_BLOCK = THREADS_PER_BLOCK / WARP_SIZE;
constexpr int TILE_SIZE = 1024;
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

// Floats as unsigned integers of the same order, so that the integer maximum is the float one,
// mixed signs and -0 included. Only a NaN could have key 0: zeroed memory is below every value.
__device__ __forceinline__ unsigned ordered_key(float value) {
    const unsigned bits = __float_as_uint(value);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float value_of_key(unsigned key) {
    return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

// What the blocks of a row share; all zero before the first launch.
struct RowStats {
    unsigned max_key;
    float sum;
};

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
    for (int c = threadIdx.x; c < cols; c += THREADS_PER_BLOCK) {
        y[c] = expf(x[c] - row_max) / row_sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_t1_max(const float* __restrict__ x, RowStats* stats, int rows, int cols) {
    // This block's tile of its row.
    const int tiles_per_row = (cols + TILE_SIZE - 1) / TILE_SIZE;
    const int row = blockIdx.x / tiles_per_row;
    const int first_col = blockIdx.x % tiles_per_row * TILE_SIZE;
    const int tile_cols = min(TILE_SIZE, cols - first_col);
    const size_t row_start = static_cast<size_t>(row) * cols + first_col;
    const float* x_row = x + row_start;

    const float tile_max = row_reduce<Max>(thread_max(x_row, tile_cols));
    if (threadIdx.x == 0) atomicMax(&stats[row].max_key, ordered_key(tile_max));
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_t1_sum(const float* __restrict__ x, RowStats* stats, int rows, int cols) {
    // This block's tile of its row.
    const int tiles_per_row = (cols + TILE_SIZE - 1) / TILE_SIZE;
    const int row = blockIdx.x / tiles_per_row;
    const int first_col = blockIdx.x % tiles_per_row * TILE_SIZE;
    const int tile_cols = min(TILE_SIZE, cols - first_col);
    const size_t row_start = static_cast<size_t>(row) * cols + first_col;
    const float* x_row = x + row_start;

    const float row_max = value_of_key(stats[row].max_key);
    const float tile_sum = row_reduce<Sum>(thread_sum(x_row, tile_cols, row_max));
    if (threadIdx.x == 0) atomicAdd(&stats[row].sum, tile_sum);
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_t1_write(const float* __restrict__ x, float* __restrict__ y, RowStats* stats, int rows,
        int cols) {
    // This block's tile of its row.
    const int tiles_per_row = (cols + TILE_SIZE - 1) / TILE_SIZE;
    const int row = blockIdx.x / tiles_per_row;
    const int first_col = blockIdx.x % tiles_per_row * TILE_SIZE;
    const int tile_cols = min(TILE_SIZE, cols - first_col);
    const size_t row_start = static_cast<size_t>(row) * cols + first_col;
    const float* x_row = x + row_start;
    float* y_row = y + row_start;

    const float row_max = value_of_key(stats[row].max_key);
    const float row_sum = stats[row].sum;
    write_row(x_row, y_row, tile_cols, row_max, row_sum);
}
