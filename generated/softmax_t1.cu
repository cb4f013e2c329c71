// softmax_t1: several blocks per row, one launch per phase, three passes, two levels of shuffles
//
//   y[r][c] = exp(x - row_max) / row_sum
//   with x = x[r][c], row_max the largest x of row r and row_sum the sum of its exp(x - row_max)
//   x and y are rows x cols, float32, row-major.
//
// variant   t1
// spec      op=softmax dtype=float32 out_dtype=float32 target=device threads_per_row=auto
//           rows_at_once=1 row_split=tiles blocks_per_row=1 row_order=interleaved row_loop=once
//           row_io=direct next_row=none topology=two_level merge=separate update=three_pass
//           cache=none vec_size=1 vec_scans=none unaligned=scalar_row loads=plain stores=plain
//           prefetch=false items_per_thread=auto trip=static tile_size=1024 threads_per_block=128
//           grid_blocks=auto min_blocks_per_sm=auto exp=expf normalize=divide static_cols=auto
// parent    v2: row_split none -> tiles, tile_size auto -> 1024, threads_per_block 256 -> 128,
//           normalize reciprocal -> divide
// requires  rows >= 1, 1 <= cols <= 2147221504, x and y aligned to 4 bytes
// launch    softmax_t1_max
//           softmax_t1_sum
//           softmax_t1_write
//           in this order, each with grid = rows * ceil(cols / 1024), block = 128
//           dynamic shared memory = 0 bytes
//           stats: 8 * rows bytes, zeroed before every call
// rebuild   kgen build --variant t1
//           (kgen 0.1.0, templates 83daa7fc)

#include <cfloat>
#include <cmath>
#include <cstddef>

constexpr int THREADS_PER_BLOCK = 128;
constexpr int WARP_SIZE = 32;
constexpr int WARPS_PER_BLOCK = THREADS_PER_BLOCK / WARP_SIZE;
constexpr int TILE_SIZE = 1024;
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

// Floats as unsigned integers of the same order, so that the integer maximum is theirs, also
// of mixed signs. Only a NaN could have key 0: zeroed memory is below every value.
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

// Every lane gets the value of its group of WIDTH neighbours; `lanes` are those that take part.
template <typename Op, int WIDTH>
__device__ __forceinline__ float warp_reduce(float value, unsigned lanes) {
#pragma unroll
    for (int offset = WIDTH / 2; offset > 0; offset /= 2) {
        value = Op::combine(value, __shfl_xor_sync(lanes, value, offset));
    }
    return value;
}

// Each warp reduces by shuffles, then the row's first warp reduces the warps' results.
template <typename Op>
__device__ __forceinline__ float row_reduce(float value) {
    __shared__ float warp_values[WARPS_PER_BLOCK];
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

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_t1_max(const float* __restrict__ x, RowStats* stats, int rows, int cols) {
    // This block's tile of its row.
    const int tiles_per_row = (cols + TILE_SIZE - 1) / TILE_SIZE;
    const int row = blockIdx.x / tiles_per_row;
    const int first_col = blockIdx.x % tiles_per_row * TILE_SIZE;
    const int tile_cols = min(TILE_SIZE, cols - first_col);
    const size_t row_start = static_cast<size_t>(row) * cols + first_col;
    const float* x_row = x + row_start;

    // Pass 1: the tile's maximum.
    float thread_max = -FLT_MAX;
    for (int c = threadIdx.x; c < tile_cols; c += THREADS_PER_BLOCK) {
        thread_max = fmaxf(thread_max, x_row[c]);
    }
    const float tile_max = row_reduce<Max>(thread_max);
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

    // Pass 2: the sum of the exponentials.
    float thread_sum = 0.0f;
    for (int c = threadIdx.x; c < tile_cols; c += THREADS_PER_BLOCK) {
        thread_sum += expf(x_row[c] - row_max);
    }
    const float tile_sum = row_reduce<Sum>(thread_sum);
    if (threadIdx.x == 0) atomicAdd(&stats[row].sum, tile_sum);
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_t1_write(const float* __restrict__ x, float* __restrict__ y, const RowStats* stats,
        int rows, int cols) {
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

    // Pass 3: the output.
    for (int c = threadIdx.x; c < tile_cols; c += THREADS_PER_BLOCK) {
        y_row[c] = expf(x_row[c] - row_max) / row_sum;
    }
}
