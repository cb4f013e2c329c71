// softmax_v4_opt: one block per row, online softmax with one exponential per element, two levels of
// shuffles
//
//   y[r][c] = exp(x[r][c] - max_r) / sum_c exp(x[r][c] - max_r)
//   x and y are rows x cols, float32, row-major.
//
// variant   v4_opt
// spec      row_map=block topology=two_level merge=separate update=online_shared cache=none
//           vec_size=1 vec_scans=none unaligned=scalar_row prefetch=false items_per_thread=auto
//           trip=static tile_size=auto threads_per_block=256 grid_blocks=auto
//           min_blocks_per_sm=auto exp=expf normalize=reciprocal static_cols=auto
// parent    v4: update online -> online_shared
// requires  rows >= 1, 1 <= cols <= 2147221504, x and y aligned to 4 bytes
// launch    grid = rows, block = 256
//           dynamic shared memory = 0 bytes
// rebuild   kgen build --variant v4_opt
//           (kgen 0.1.0, templates c5d54bb2)

#include <cfloat>
#include <cmath>
#include <cstddef>

constexpr int THREADS_PER_BLOCK = 256;
constexpr int WARP_SIZE = 32;
constexpr int WARPS_PER_BLOCK = THREADS_PER_BLOCK / WARP_SIZE;
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

// update=online_shared: e rescales the sum when x is the new maximum, else it is x's own term.
__device__ __forceinline__ void update(State& state, float x) {
    const float e = expf(-fabsf(x - state.m));
    state.d = x > state.m ? state.d * e + 1.0f : state.d + e;
    state.m = fmaxf(state.m, x);
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

// Scan 1: the state of this thread's elements.
__device__ __forceinline__ State scan_row(const float* __restrict__ x, int cols) {
    State state = empty_state();
    for (int c = threadIdx.x; c < cols; c += THREADS_PER_BLOCK) {
        update(state, x[c]);
    }
    if (state.m == INFINITY) state.d = NAN;  // inf - inf: such a row is NaN
    return state;
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
    softmax_v4_opt(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int row = blockIdx.x;
    const size_t row_start = static_cast<size_t>(row) * cols;
    const float* x_row = x + row_start;
    float* y_row = y + row_start;

    // Scan 1: a state a thread; then the row's maximum, then the sums rescaled to it.
    const State thread_state = scan_row(x_row, cols);
    const float row_max = row_reduce<Max>(thread_state.m);
    const float rescale = expf(thread_state.m - row_max);
    const float row_sum = row_reduce<Sum>(thread_state.d * rescale);

    // Scan 2: normalise.
    write_row(x_row, y_row, cols, row_max, row_sum);
}
