// softmax_t2: one block per row, online softmax tile by tile, two levels of shuffles
//
//   y[r][c] = exp(x - row_max) / row_sum
//   with x = x[r][c], row_max the largest x of row r and row_sum the sum of its exp(x - row_max)
//   x and y are rows x cols, float32, row-major.
//
// variant   t2
// spec      op=softmax dtype=float32 out_dtype=float32 target=device threads_per_row=auto
//           rows_at_once=1 row_split=none blocks_per_row=1 row_order=interleaved row_loop=once
//           row_io=direct next_row=none topology=two_level merge=separate update=online_tile
//           cache=none vec_size=1 vec_scans=none unaligned=scalar_row loads=plain stores=plain
//           prefetch=false items_per_thread=auto trip=static tile_size=1024 threads_per_block=128
//           grid_blocks=auto min_blocks_per_sm=auto exp=expf normalize=divide static_cols=auto
// parent    t1: row_split tiles -> none, update three_pass -> online_tile
// requires  rows >= 1, 1 <= cols <= 2147221504, x and y aligned to 4 bytes
// launch    grid = rows, block = 128
//           dynamic shared memory = 0 bytes
// rebuild   kgen build --variant t2
//           (kgen 0.1.0, templates 83daa7fc)

#include <cfloat>
#include <cmath>
#include <cstddef>

constexpr int THREADS_PER_BLOCK = 128;
constexpr int WARP_SIZE = 32;
constexpr int WARPS_PER_BLOCK = THREADS_PER_BLOCK / WARP_SIZE;
constexpr int TILE_SIZE = 1024;
constexpr int TILE_ITEMS = 8;
constexpr unsigned WHOLE_WARP = 0xffffffffu;

// What is known of a set of elements: m is their maximum, d the sum of exp(x - m).
struct State {
    float m;
    float d;
};

// No elements. m is -FLT_MAX and not -inf, so that nothing computes (-inf) - (-inf).
__device__ __forceinline__ State empty_state() {
    return {-FLT_MAX, 0.0f};
}

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

// This thread's part of a tile. Columns past the end read as -inf, and exp(-inf - m) adds nothing.
__device__ __forceinline__ void load_row(float (&values)[TILE_ITEMS], const float* __restrict__ x,
    int cols) {
#pragma unroll
    for (int i = 0; i < TILE_ITEMS; ++i) {
        const int c = threadIdx.x + i * THREADS_PER_BLOCK;
        values[i] = c < cols ? x[c] : -INFINITY;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_t2(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int row = blockIdx.x;
    const size_t row_start = static_cast<size_t>(row) * cols;
    const float* x_row = x + row_start;
    float* y_row = y + row_start;

    // Tile by tile: the state of the row.
    State row_state = empty_state();
    for (int start = 0; start < cols; start += TILE_SIZE) {
        const int tile_length = min(TILE_SIZE, cols - start);
        float tile[TILE_ITEMS];
        load_row(tile, x_row + start, tile_length);

        float thread_max = -FLT_MAX;
#pragma unroll
        for (int k = 0; k < TILE_ITEMS; ++k) {
            thread_max = fmaxf(thread_max, tile[k]);
        }
        const float m = fmaxf(row_state.m, row_reduce<Max>(thread_max));
        float thread_sum = 0.0f;
#pragma unroll
        for (int k = 0; k < TILE_ITEMS; ++k) {
            thread_sum += expf(tile[k] - m);
        }
        __syncthreads();  // all have read the result before the next reduction writes there
        row_state = {m, row_state.d * expf(row_state.m - m) + row_reduce<Sum>(thread_sum)};
        __syncthreads();  // all have read the result before the next tile writes there
    }

    // Scan 2: the output.
    for (int c = threadIdx.x; c < cols; c += THREADS_PER_BLOCK) {
        y_row[c] = expf(x_row[c] - row_state.m) / row_state.d;
    }
}
