// softmax_v7: one block per row, online softmax with one exponential per element, inputs kept in
// registers, two levels of shuffles of (maximum, sum) pairs, 16-byte accesses in all scans
//
//   y[r][c] = exp(x[r][c] - max_r) / sum_c exp(x[r][c] - max_r)
//   x and y are rows x cols, float32, row-major.
//
// variant   v7
// spec      row_map=block topology=two_level merge=paired update=online_shared
//           cache=inputs_registers vec_size=4 vec_scans=both unaligned=scalar_groups prefetch=false
//           items_per_thread=4 trip=static tile_size=auto threads_per_block=256 grid_blocks=auto
//           min_blocks_per_sm=auto exp=expf normalize=reciprocal static_cols=auto
// parent    v6_double: cache none -> inputs_registers, unaligned scalar_row -> scalar_groups
// requires  rows >= 1, 1 <= cols <= 4099, x and y aligned to 4 bytes (rows aligned to 16 use
//           vectors)
// launch    grid = rows, block = 256
//           dynamic shared memory = 0 bytes
// rebuild   kgen build --variant v7
//           (kgen 0.1.0, templates c5d54bb2)

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>

constexpr int THREADS_PER_BLOCK = 256;
constexpr int WARP_SIZE = 32;
constexpr int WARPS_PER_BLOCK = THREADS_PER_BLOCK / WARP_SIZE;
constexpr int VEC_SIZE = 4;
constexpr int ITEMS_PER_THREAD = 4;
constexpr int TAIL_SLOTS = 1;  // for the columns that no group covers
constexpr int SLOTS = TAIL_SLOTS + ITEMS_PER_THREAD * VEC_SIZE;
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

// unaligned=scalar_groups: every row is walked in groups of VEC_SIZE neighbours; on a row that
// starts off a vector boundary, a group is accessed one element at a time.
__device__ __forceinline__ bool is_vec_aligned(const float* row) {
    return reinterpret_cast<uintptr_t>(row) % sizeof(float4) == 0;
}

__device__ __forceinline__ float4 load_group(const float* row, int g, bool is_aligned) {
    if (is_aligned) return reinterpret_cast<const float4*>(row)[g];
    const float* group = row + g * VEC_SIZE;
    return {group[0], group[1], group[2], group[3]};
}

__device__ __forceinline__ void store_group(float* row, int g, float4 v, bool is_aligned) {
    if (is_aligned) {
        reinterpret_cast<float4*>(row)[g] = v;
        return;
    }
    float* group = row + g * VEC_SIZE;
    group[0] = v.x;
    group[1] = v.y;
    group[2] = v.z;
    group[3] = v.w;
}

// A thread's part of the row, read into registers. Columns past the end read as -inf, and
// exp(-inf - m) adds nothing.
// Slots hold the thread's share of the tail first, then its groups of VEC_SIZE neighbours.
__device__ __forceinline__ void load_values(float (&values)[SLOTS], const float* __restrict__ x,
    int cols, bool is_aligned) {
    const int groups = cols / VEC_SIZE;
    const int tail = groups * VEC_SIZE;
#pragma unroll
    for (int i = 0; i < TAIL_SLOTS; ++i) {
        const int c = tail + threadIdx.x + i * THREADS_PER_BLOCK;
        values[i] = c < cols ? x[c] : -INFINITY;
    }
#pragma unroll
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
        const int g = threadIdx.x + i * THREADS_PER_BLOCK;
        float* slot = values + TAIL_SLOTS + i * VEC_SIZE;
        float4 v = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
        if (g < groups) v = load_group(x, g, is_aligned);
        slot[0] = v.x;
        slot[1] = v.y;
        slot[2] = v.z;
        slot[3] = v.w;
    }
}

// The values go back to the columns that load_values took them from.
__device__ __forceinline__ void store_values(const float (&values)[SLOTS], float* __restrict__ y,
    int cols, bool is_aligned) {
    const int groups = cols / VEC_SIZE;
    const int tail = groups * VEC_SIZE;
#pragma unroll
    for (int i = 0; i < TAIL_SLOTS; ++i) {
        const int c = tail + threadIdx.x + i * THREADS_PER_BLOCK;
        if (c < cols) y[c] = values[i];
    }
#pragma unroll
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
        const int g = threadIdx.x + i * THREADS_PER_BLOCK;
        const float* slot = values + TAIL_SLOTS + i * VEC_SIZE;
        if (g < groups) store_group(y, g, {slot[0], slot[1], slot[2], slot[3]}, is_aligned);
    }
}

// Online: the state of this thread's elements.
__device__ __forceinline__ State scan_row(const float (&values)[SLOTS]) {
    State state = empty_state();
#pragma unroll
    for (int k = 0; k < SLOTS; ++k) {
        update(state, values[k]);
    }
    if (state.m == INFINITY) state.d = NAN;  // inf - inf: such a row is NaN
    return state;
}

// The writing scan: normalise from the inputs in registers.
__device__ __forceinline__ void write_row(float (&values)[SLOTS], float* __restrict__ y, int cols,
    bool is_aligned, float row_max, float row_sum) {
    const float inverse_sum = 1.0f / row_sum;
#pragma unroll
    for (int k = 0; k < SLOTS; ++k) {
        values[k] = expf(values[k] - row_max) * inverse_sum;
    }
    store_values(values, y, cols, is_aligned);
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_v7(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int row = blockIdx.x;
    const size_t row_start = static_cast<size_t>(row) * cols;
    const float* x_row = x + row_start;
    float* y_row = y + row_start;
    const bool is_aligned = is_vec_aligned(x_row) && is_vec_aligned(y_row);
    float values[SLOTS];
    load_values(values, x_row, cols, is_aligned);

    // Online: maximum and sum of the row.
    const State thread_state = scan_row(values);
    const State row_state = row_reduce<Merge>(thread_state);

    // Write: normalise.
    write_row(values, y_row, cols, is_aligned, row_state.m, row_state.d);
}
