// softmax_v8: one warp per row, online softmax with one exponential per element, shuffles in one
// warp of (maximum, sum) pairs
//
//   y[r][c] = exp(x - row_max) / row_sum
//   with x = x[r][c], row_max the largest x of row r and row_sum the sum of its exp(x - row_max)
//   x and y are rows x cols, float32, row-major.
//
// variant   v8
// spec      op=softmax dtype=float32 out_dtype=float32 target=device threads_per_row=32
//           rows_at_once=1 row_split=none blocks_per_row=1 row_order=interleaved row_loop=once
//           row_io=direct next_row=none topology=warp merge=paired update=online_shared cache=none
//           vec_size=1 vec_scans=none unaligned=scalar_row loads=plain stores=plain prefetch=false
//           items_per_thread=auto trip=static tile_size=auto threads_per_block=256 grid_blocks=auto
//           min_blocks_per_sm=auto exp=expf normalize=reciprocal static_cols=auto
// parent    v5: threads_per_row auto -> 32, topology two_level -> warp
// requires  rows >= 1, 1 <= cols <= 2147221504, x and y aligned to 4 bytes
// launch    grid = ceil(rows / 8), block = 256
//           dynamic shared memory = 0 bytes
// rebuild   kgen build --variant v8
//           (kgen 0.1.0, templates 83daa7fc)

#include <cfloat>
#include <cmath>
#include <cstddef>

constexpr int THREADS_PER_BLOCK = 256;
constexpr int WARP_SIZE = 32;
constexpr int ROWS_PER_BLOCK = THREADS_PER_BLOCK / WARP_SIZE;
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

// Both sums are rescaled to the common maximum (Milakov and Gimelshein, arXiv 1805.02867, eq. 4).
__device__ __forceinline__ State merge(State a, State b) {
    const float m = fmaxf(a.m, b.m);
    return {m, a.d * expf(a.m - m) + b.d * expf(b.m - m)};
}

// Online softmax (Milakov and Gimelshein, arXiv 1805.02867) with one exponential: e rescales the
// sum when x is the new maximum, else it is x's own term.
__device__ __forceinline__ void update(State& state, float x) {
    const float e = expf(-fabsf(x - state.m));
    state.d = x > state.m ? state.d * e + 1.0f : state.d + e;
    state.m = fmaxf(state.m, x);
}

// Every lane gets the state of its group of WIDTH neighbours; `lanes` are those that take part.
template <int WIDTH>
__device__ __forceinline__ State warp_reduce(State state, unsigned lanes) {
#pragma unroll
    for (int offset = WIDTH / 2; offset > 0; offset /= 2) {
        const float m = __shfl_xor_sync(lanes, state.m, offset);
        const float d = __shfl_xor_sync(lanes, state.d, offset);
        state = merge(state, {m, d});
    }
    return state;
}

// The threads of a row are lanes of one warp, so shuffles alone reach all of them.
__device__ __forceinline__ State row_reduce(State state) {
    return warp_reduce<WARP_SIZE>(state, WHOLE_WARP);
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_v8(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int row = blockIdx.x * ROWS_PER_BLOCK + threadIdx.x / WARP_SIZE;
    if (row >= rows) return;  // all threads of a row leave together
    const size_t row_start = static_cast<size_t>(row) * cols;
    const float* x_row = x + row_start;
    float* y_row = y + row_start;

    // Scan 1: maximum and sum of this thread's elements, then of the row's.
    State thread_state = empty_state();
    for (int c = threadIdx.x % WARP_SIZE; c < cols; c += WARP_SIZE) {
        update(thread_state, x_row[c]);
    }
    const State row_state = row_reduce(thread_state);

    // Scan 2: the output.
    const float inverse_sum = 1.0f / row_state.d;
    for (int c = threadIdx.x % WARP_SIZE; c < cols; c += WARP_SIZE) {
        y_row[c] = expf(x_row[c] - row_state.m) * inverse_sum;
    }
}
