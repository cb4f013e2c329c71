// softmax_v7: one block per row, online softmax with one exponential per element, inputs kept in
// registers, two levels of shuffles of (maximum, sum) pairs, 16-byte accesses in all scans
//
//   y[r][c] = exp(x - row_max) / row_sum
//   with x = x[r][c], row_max the largest x of row r and row_sum the sum of its exp(x - row_max)
//   x and y are rows x cols, float32, row-major.
//
// variant   v7
// spec      op=softmax dtype=float32 out_dtype=float32 target=device threads_per_row=auto
//           rows_at_once=1 row_split=none blocks_per_row=1 row_order=interleaved row_loop=once
//           row_io=direct next_row=none topology=two_level merge=paired update=online_shared
//           cache=inputs_registers vec_size=4 vec_scans=both unaligned=scalar_groups loads=plain
//           stores=plain prefetch=false items_per_thread=4 trip=static tile_size=auto
//           threads_per_block=256 grid_blocks=auto min_blocks_per_sm=auto exp=expf
//           normalize=reciprocal static_cols=auto
// parent    v6_double: cache none -> inputs_registers, unaligned scalar_row -> scalar_groups
// requires  rows >= 1, 1 <= cols <= 4099, x and y aligned to 4 bytes (rows aligned to 16 use
//           vectors)
// launch    grid = rows, block = 256
//           dynamic shared memory = 0 bytes
// rebuild   kgen build --variant v7
//           (kgen 0.1.0, templates 83daa7fc)

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>

constexpr int THREADS_PER_BLOCK = 256;
constexpr int WARP_SIZE = 32;
constexpr int WARPS_PER_BLOCK = THREADS_PER_BLOCK / WARP_SIZE;
constexpr int VEC_SIZE = 4;
constexpr int ITEMS_PER_THREAD = 4;
constexpr int TAIL_SLOTS = 1;  // for the columns that no vector covers
constexpr int SLOTS = TAIL_SLOTS + ITEMS_PER_THREAD * VEC_SIZE;
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

// Each warp reduces by shuffles, then the row's first warp reduces the warps' results.
__device__ __forceinline__ State row_reduce(State state) {
    __shared__ State warp_states[WARPS_PER_BLOCK];
    const int lane = threadIdx.x % WARP_SIZE;
    const int warp = threadIdx.x / WARP_SIZE;

    state = warp_reduce<WARP_SIZE>(state, WHOLE_WARP);
    if (lane == 0) warp_states[warp] = state;
    __syncthreads();  // every warp's state is visible
    if (warp == 0) {
        state = lane < WARPS_PER_BLOCK ? warp_states[lane] : empty_state();
        state = warp_reduce<WARPS_PER_BLOCK>(state, WHOLE_WARP);
        if (lane == 0) warp_states[0] = state;
    }
    __syncthreads();  // the row's state is visible
    return warp_states[0];
}

// Neighbouring elements that are accessed at once.
struct alignas(VEC_SIZE * sizeof(float)) Vec {
    float at[VEC_SIZE];
};

__device__ __forceinline__ bool is_vec_aligned(const float* row) {
    return reinterpret_cast<uintptr_t>(row) % alignof(Vec) == 0;
}

// A row that starts off a vector's boundary has its vectors accessed one element at a time.
__device__ __forceinline__ Vec load_vec(const float* row, int v, bool is_aligned) {
    if (is_aligned) return reinterpret_cast<const Vec*>(row)[v];
    Vec vec;
#pragma unroll
    for (int k = 0; k < VEC_SIZE; ++k) {
        vec.at[k] = row[v * VEC_SIZE + k];
    }
    return vec;
}

__device__ __forceinline__ void store_vec(float* row, int v, Vec vec, bool is_aligned) {
    if (is_aligned) {
        reinterpret_cast<Vec*>(row)[v] = vec;
        return;
    }
#pragma unroll
    for (int k = 0; k < VEC_SIZE; ++k) {
        row[v * VEC_SIZE + k] = vec.at[k];
    }
}

// This thread's part of the row. Columns past the end read as -inf, and exp(-inf - m) adds nothing.
__device__ __forceinline__ void load_row(float (&values)[SLOTS], const float* __restrict__ x,
    int cols, bool is_aligned) {
    const int vecs = cols / VEC_SIZE;
#pragma unroll
    for (int k = 0; k < TAIL_SLOTS; ++k) {
        const int c = vecs * VEC_SIZE + threadIdx.x + k * THREADS_PER_BLOCK;
        values[k] = c < cols ? x[c] : -INFINITY;
    }
#pragma unroll
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
        const int v = threadIdx.x + i * THREADS_PER_BLOCK;
        float* slot = values + TAIL_SLOTS + i * VEC_SIZE;
#pragma unroll
        for (int k = 0; k < VEC_SIZE; ++k) {
            slot[k] = -INFINITY;
        }
        if (v < vecs) {
            const Vec vec = load_vec(x, v, is_aligned);
#pragma unroll
            for (int k = 0; k < VEC_SIZE; ++k) {
                slot[k] = vec.at[k];
            }
        }
    }
}

// The slots go back to the columns that load_row took them from.
__device__ __forceinline__ void store_row(const float (&values)[SLOTS], float* __restrict__ y,
    int cols, bool is_aligned) {
    const int vecs = cols / VEC_SIZE;
#pragma unroll
    for (int k = 0; k < TAIL_SLOTS; ++k) {
        const int c = vecs * VEC_SIZE + threadIdx.x + k * THREADS_PER_BLOCK;
        if (c < cols) y[c] = values[k];
    }
#pragma unroll
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
        const int v = threadIdx.x + i * THREADS_PER_BLOCK;
        const float* slot = values + TAIL_SLOTS + i * VEC_SIZE;
        Vec vec;
#pragma unroll
        for (int k = 0; k < VEC_SIZE; ++k) {
            vec.at[k] = slot[k];
        }
        if (v < vecs) store_vec(y, v, vec, is_aligned);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_v7(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int row = blockIdx.x;
    const size_t row_start = static_cast<size_t>(row) * cols;
    const float* x_row = x + row_start;
    float* y_row = y + row_start;
    const bool is_aligned = is_vec_aligned(x_row) && is_vec_aligned(y_row);
    float values[SLOTS];
    load_row(values, x_row, cols, is_aligned);

    // Online: maximum and sum of this thread's elements, then of the row's.
    State thread_state = empty_state();
#pragma unroll
    for (int k = 0; k < SLOTS; ++k) {
        update(thread_state, values[k]);
    }
    const State row_state = row_reduce(thread_state);

    // Write: the output, from the inputs in registers.
    const float inverse_sum = 1.0f / row_state.d;
#pragma unroll
    for (int k = 0; k < SLOTS; ++k) {
        values[k] = expf(values[k] - row_state.m) * inverse_sum;
    }
    store_row(values, y_row, cols, is_aligned);
}
