// softmax_v8: one warp per row, online softmax with one exponential per element, shuffles in one
// warp of (maximum, sum) pairs
//
//   y[r][c] = exp(x[r][c] - max_r) / sum_c exp(x[r][c] - max_r)
//   x and y are rows x cols, float32, row-major.
//
// variant   v8
// spec      row_map=warp topology=warp merge=paired update=online_shared cache=none vec_size=1
//           vec_scans=none unaligned=scalar_row prefetch=false items_per_thread=auto trip=static
//           tile_size=auto threads_per_block=256 grid_blocks=auto min_blocks_per_sm=auto exp=expf
//           normalize=reciprocal static_cols=auto
// parent    v5: row_map block -> warp, topology two_level -> warp
// requires  rows >= 1, 1 <= cols <= 2147221504, x and y aligned to 4 bytes
// launch    grid = ceil(rows / 8), block = 256
//           dynamic shared memory = 0 bytes
// rebuild   kgen build --variant v8
//           (kgen 0.1.0, templates c5d54bb2)

#include <cfloat>
#include <cmath>
#include <cstddef>

constexpr int THREADS_PER_BLOCK = 256;
constexpr int WARP_SIZE = 32;
constexpr int ROWS_PER_BLOCK = THREADS_PER_BLOCK / WARP_SIZE;
constexpr unsigned WHOLE_WARP = 0xffffffffu;

__device__ __forceinline__ int lane_id() {
    return threadIdx.x % WARP_SIZE;
}

// State of a set of elements: m is their maximum, d the sum of exp(x - m).
struct State {
    float m;
    float d;
};

// The empty set starts at -FLT_MAX, not -inf: no update or merge then computes (-inf) - (-inf).
__device__ __forceinline__ State empty_state() {
    return {-FLT_MAX, 0.0f};
}

// update=online_shared: e rescales the sum when x is the new maximum, else it is x's own term.
__device__ __forceinline__ void update(State& state, float x) {
    const float e = expf(-fabsf(x - state.m));
    state.d = x > state.m ? state.d * e + 1.0f : state.d + e;
    state.m = fmaxf(state.m, x);
}

// Both sums are rescaled to the common maximum.
__device__ __forceinline__ State merge(State a, State b) {
    const float m = fmaxf(a.m, b.m);
    return {m, a.d * expf(a.m - m) + b.d * expf(b.m - m)};
}

// What row_reduce combines: maximum and sum travel as a pair.
struct Merge {
    using Value = State;
    static __device__ State combine(State a, State b) { return merge(a, b); }
};

__device__ __forceinline__ State shuffle_down(State value, int offset) {
    const float m = __shfl_down_sync(WHOLE_WARP, value.m, offset);
    const float d = __shfl_down_sync(WHOLE_WARP, value.d, offset);
    return {m, d};
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

__device__ __forceinline__ State from_lane0(State value) {
    return {__shfl_sync(WHOLE_WARP, value.m, 0), __shfl_sync(WHOLE_WARP, value.d, 0)};
}

// topology=warp: a row's threads are one warp, so shuffles alone reach all of them.
// All lanes get the result; on return the function may be called again.
template <typename Op>
__device__ __forceinline__ typename Op::Value row_reduce(typename Op::Value value) {
    return from_lane0(warp_reduce<Op>(value));
}

// Scan 1: the state of this thread's elements.
__device__ __forceinline__ State scan_row(const float* __restrict__ x, int cols) {
    State state = empty_state();
    for (int c = lane_id(); c < cols; c += WARP_SIZE) {
        update(state, x[c]);
    }
    if (state.m == INFINITY) state.d = NAN;  // inf - inf: such a row is NaN
    return state;
}

// The writing scan: normalise.
__device__ __forceinline__ void write_row(const float* __restrict__ x, float* __restrict__ y,
    int cols, float row_max, float row_sum) {
    const float inverse_sum = 1.0f / row_sum;
    for (int c = lane_id(); c < cols; c += WARP_SIZE) {
        y[c] = expf(x[c] - row_max) * inverse_sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_v8(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int row = blockIdx.x * ROWS_PER_BLOCK + threadIdx.x / WARP_SIZE;
    if (row >= rows) return;  // a warp past the last row leaves as a whole
    const size_t row_start = static_cast<size_t>(row) * cols;
    const float* x_row = x + row_start;
    float* y_row = y + row_start;

    // Scan 1: maximum and sum of the row.
    const State thread_state = scan_row(x_row, cols);
    const State row_state = row_reduce<Merge>(thread_state);

    // Scan 2: normalise.
    write_row(x_row, y_row, cols, row_state.m, row_state.d);
}
