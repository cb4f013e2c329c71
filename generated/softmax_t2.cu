// softmax_t2: one block per row, online softmax tile by tile, two levels of shuffles
//
//   y[r][c] = exp(x[r][c] - max_r) / sum_c exp(x[r][c] - max_r)
//   x and y are rows x cols, float32, row-major.
//
// variant   t2
// spec      row_map=block topology=two_level merge=separate update=online_tile cache=none
//           vec_size=1 vec_scans=none unaligned=scalar_row prefetch=false items_per_thread=auto
//           trip=static tile_size=1024 threads_per_block=128 grid_blocks=auto
//           min_blocks_per_sm=auto exp=expf normalize=divide static_cols=auto
// parent    t1: row_map grid -> block, update three_pass -> online_tile
// requires  rows >= 1, 1 <= cols <= 2147221504, x and y aligned to 4 bytes
// launch    grid = rows, block = 128
//           dynamic shared memory = 0 bytes
// rebuild   kgen build --variant t2
//           (kgen 0.1.0, templates c5d54bb2)

#include <cfloat>
#include <cmath>
#include <cstddef>

constexpr int THREADS_PER_BLOCK = 128;
constexpr int WARP_SIZE = 32;
constexpr int WARPS_PER_BLOCK = THREADS_PER_BLOCK / WARP_SIZE;
constexpr int TILE_SIZE = 1024;
constexpr int TILE_ITEMS = 8;
constexpr unsigned WHOLE_WARP = 0xffffffffu;

// State of a set of elements: m is their maximum, d the sum of exp(x - m).
struct State {
    float m;
    float d;
};

// The empty set starts at -FLT_MAX, not -inf: no update or merge then computes (-inf) - (-inf).
__device__ __forceinline__ State empty_state() {
    return {-FLT_MAX, 0.0f};
}

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

// A thread's part of a tile, read into registers. Columns past the end read as -inf, and
// exp(-inf - m) adds nothing.
__device__ __forceinline__ void load_values(float (&values)[TILE_ITEMS],
    const float* __restrict__ x, int cols) {
#pragma unroll
    for (int i = 0; i < TILE_ITEMS; ++i) {
        const int c = threadIdx.x + i * THREADS_PER_BLOCK;
        values[i] = c < cols ? x[c] : -INFINITY;
    }
}

// The maximum of this thread's elements of a tile.
__device__ __forceinline__ float thread_max(const float (&tile)[TILE_ITEMS]) {
    float m = -FLT_MAX;
#pragma unroll
    for (int k = 0; k < TILE_ITEMS; ++k) {
        m = fmaxf(m, tile[k]);
    }
    return m;
}

// The sum of exp(x - m) over this thread's elements of a tile.
__device__ __forceinline__ float thread_sum(const float (&tile)[TILE_ITEMS], float m) {
    float d = 0.0f;
#pragma unroll
    for (int k = 0; k < TILE_ITEMS; ++k) {
        d += expf(tile[k] - m);
    }
    return d;
}

// update=online_tile: the row's threads share one state. A tile is reduced to its maximum and sum,
// which join the state, before the next tile is read. Every thread goes through every tile, so the
// barriers of the reduction are met by all.
__device__ __forceinline__ State scan_row(const float* __restrict__ x, int cols) {
    State state = empty_state();
    for (int start = 0; start < cols; start += TILE_SIZE) {
        const int tile_cols = cols - start < TILE_SIZE ? cols - start : TILE_SIZE;
        float tile[TILE_ITEMS];
        load_values(tile, x + start, tile_cols);
        const float m = fmaxf(state.m, row_reduce<Max>(thread_max(tile)));
        const float d = row_reduce<Sum>(thread_sum(tile, m));
        state = {m, state.d * expf(state.m - m) + d};
    }
    return state;
}

// The writing scan: normalise.
__device__ __forceinline__ void write_row(const float* __restrict__ x, float* __restrict__ y,
    int cols, float row_max, float row_sum) {
    for (int c = threadIdx.x; c < cols; c += THREADS_PER_BLOCK) {
        y[c] = expf(x[c] - row_max) / row_sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_t2(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int row = blockIdx.x;
    const size_t row_start = static_cast<size_t>(row) * cols;
    const float* x_row = x + row_start;
    float* y_row = y + row_start;

    // Scan 1: maximum and sum of the row.
    const State row_state = scan_row(x_row, cols);

    // Scan 2: normalise.
    write_row(x_row, y_row, cols, row_state.m, row_state.d);
}
