// softmax_v6_fetch: one block per row, online softmax with one exponential per element, two levels
// of shuffles of (maximum, sum) pairs, 16-byte accesses in all scans, the next vector fetched ahead
//
//   y[r][c] = exp(x[r][c] - max_r) / sum_c exp(x[r][c] - max_r)
//   x and y are rows x cols, float32, row-major.
//
// variant   v6_fetch
// spec      row_map=block topology=two_level merge=paired update=online_shared cache=none
//           vec_size=4 vec_scans=both unaligned=scalar_row prefetch=true items_per_thread=auto
//           trip=static tile_size=auto threads_per_block=256 grid_blocks=auto
//           min_blocks_per_sm=auto exp=expf normalize=reciprocal static_cols=auto
// parent    v6_double: prefetch false -> true
// requires  rows >= 1, 1 <= cols <= 2147221504, x and y aligned to 4 bytes (rows aligned to 16 use
//           vectors)
// launch    grid = rows, block = 256
//           dynamic shared memory = 0 bytes
// rebuild   kgen build --variant v6_fetch
//           (kgen 0.1.0, templates c5d54bb2)

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>

constexpr int THREADS_PER_BLOCK = 256;
constexpr int WARP_SIZE = 32;
constexpr int WARPS_PER_BLOCK = THREADS_PER_BLOCK / WARP_SIZE;
constexpr int VEC_SIZE = 4;
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

// Both sums are rescaled to the common maximum.
__device__ __forceinline__ State merge(State a, State b) {
    const float m = fmaxf(a.m, b.m);
    return {m, a.d * expf(a.m - m) + b.d * expf(b.m - m)};
}

// What row_reduce combines: maximum and sum travel as a pair.
struct Merge {
    using Value = State;
    static __device__ State identity() { return empty_state(); }
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

// unaligned=scalar_row: a row that starts off a vector boundary is walked one element at a time.
__device__ __forceinline__ bool is_vec_aligned(const float* row) {
    return reinterpret_cast<uintptr_t>(row) % sizeof(float4) == 0;
}

// Columns g * VEC_SIZE and the next ones of an aligned row.
__device__ __forceinline__ float4 load_group(const float* row, int g) {
    return reinterpret_cast<const float4*>(row)[g];
}

__device__ __forceinline__ void store_group(float* row, int g, float4 v) {
    reinterpret_cast<float4*>(row)[g] = v;
}

// Scan 1: the state of this thread's elements.
__device__ __forceinline__ State scan_row(const float* __restrict__ x, int cols, bool is_aligned) {
    State state = empty_state();
    int tail = 0;  // the first column that no group covers
    if (is_aligned) {
        for (int g = threadIdx.x; g < cols / VEC_SIZE; g += THREADS_PER_BLOCK) {
            const float4 v = load_group(x, g);
            update(state, v.x);
            update(state, v.y);
            update(state, v.z);
            update(state, v.w);
        }
        tail = cols - cols % VEC_SIZE;
    }
    for (int c = tail + threadIdx.x; c < cols; c += THREADS_PER_BLOCK) {
        update(state, x[c]);
    }
    if (state.m == INFINITY) state.d = NAN;  // inf - inf: such a row is NaN
    return state;
}

// The writing scan: normalise.
__device__ __forceinline__ void write_row(const float* __restrict__ x, float* __restrict__ y,
    int cols, bool is_aligned, float row_max, float row_sum) {
    const float inverse_sum = 1.0f / row_sum;
    int tail = 0;  // the first column that no group covers
    if (is_aligned) {
        const int groups = cols / VEC_SIZE;
        float4 next = {};
        if (threadIdx.x < groups) next = load_group(x, threadIdx.x);
        for (int g = threadIdx.x; g < groups; g += THREADS_PER_BLOCK) {
            float4 v = next;
            // The next group is on its way while this one is computed.
            if (g + THREADS_PER_BLOCK < groups) next = load_group(x, g + THREADS_PER_BLOCK);
            v.x = expf(v.x - row_max) * inverse_sum;
            v.y = expf(v.y - row_max) * inverse_sum;
            v.z = expf(v.z - row_max) * inverse_sum;
            v.w = expf(v.w - row_max) * inverse_sum;
            store_group(y, g, v);
        }
        tail = cols - cols % VEC_SIZE;
    }
    for (int c = tail + threadIdx.x; c < cols; c += THREADS_PER_BLOCK) {
        y[c] = expf(x[c] - row_max) * inverse_sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_v6_fetch(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int row = blockIdx.x;
    const size_t row_start = static_cast<size_t>(row) * cols;
    const float* x_row = x + row_start;
    float* y_row = y + row_start;
    const bool is_aligned = is_vec_aligned(x_row) && is_vec_aligned(y_row);

    // Scan 1: maximum and sum of the row.
    const State thread_state = scan_row(x_row, cols, is_aligned);
    const State row_state = row_reduce<Merge>(thread_state);

    // Scan 2: normalise.
    write_row(x_row, y_row, cols, is_aligned, row_state.m, row_state.d);
}
