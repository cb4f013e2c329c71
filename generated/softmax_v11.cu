// softmax_v11: one block per row, three passes, exponentials kept in registers, each warp merges
// the (maximum, sum) pairs of all warps, 16-byte accesses in all scans from the vector boundary
// below a row
//
//   y[r][c] = exp(x - row_max) / row_sum
//   with x = x[r][c], row_max the largest x of row r and row_sum the sum of its exp(x - row_max)
//   x and y are rows x cols, float32, row-major.
//
// variant   v11
// spec      op=softmax dtype=float32 out_dtype=float32 target=device threads_per_row=auto
//           rows_at_once=1 row_split=none blocks_per_row=1 row_order=interleaved row_loop=once
//           row_io=direct next_row=none topology=all_warps merge=by_warp update=three_pass
//           cache=exps_registers vec_size=4 vec_scans=both unaligned=shift loads=plain stores=plain
//           prefetch=false items_per_thread=4 trip=static tile_size=auto threads_per_block=256
//           grid_blocks=auto min_blocks_per_sm=auto exp=exp2 normalize=reciprocal static_cols=auto
// parent    v7: topology two_level -> all_warps, merge paired -> by_warp, update online_shared ->
//           three_pass, cache inputs_registers -> exps_registers, unaligned scalar_groups -> shift,
//           exp expf -> exp2
// requires  rows >= 1, 1 <= cols <= 4096, x and y aligned to 4 bytes (y is written by vectors where
//           it is as far from a boundary of 16 as x)
// launch    grid = rows, block = 256
//           dynamic shared memory = 0 bytes
// rebuild   kgen build --variant v11
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

// e^t as a power of two. The maximum is subtracted before the scaling: folded into one fused
// multiply-add, m * log2(e) overflows near FLT_MAX and loses digits where |x| is large.
__device__ __forceinline__ float exp_as_exp2(float t) {
    constexpr float LOG2_E = 1.4426950408889634f;
    return exp2f(t * LOG2_E);
}

// What is known of a set of elements: m is their maximum, d the sum of exp(x - m).
struct State {
    float m;
    float d;
};

// The reductions of a row: how they combine two values.
struct Max {
    static __device__ float combine(float a, float b) { return fmaxf(a, b); }
};

struct Sum {
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

// The states of all warps of the row.
__shared__ State row_states[WARPS_PER_BLOCK];

// All warps of the row get all these states, and each merges them. `own` is this warp's.
__device__ __forceinline__ State row_reduce(State own) {
    if (threadIdx.x % WARP_SIZE == 0) row_states[threadIdx.x / WARP_SIZE] = own;
    __syncthreads();  // every warp's state is visible
    const int other = threadIdx.x % WARPS_PER_BLOCK;
    const State state = row_states[other];
    const float m = warp_reduce<Max, WARPS_PER_BLOCK>(state.m, WHOLE_WARP);
    return {m, warp_reduce<Sum, WARPS_PER_BLOCK>(state.d * exp_as_exp2(state.m - m), WHOLE_WARP)};
}

// Neighbouring elements that are accessed at once.
struct alignas(VEC_SIZE * sizeof(float)) Vec {
    float at[VEC_SIZE];
};

__device__ __forceinline__ bool is_vec_aligned(const float* row) {
    return reinterpret_cast<uintptr_t>(row) % alignof(Vec) == 0;
}

__device__ __forceinline__ Vec load_vec(const float* row, int v) {
    return reinterpret_cast<const Vec*>(row)[v];
}

__device__ __forceinline__ void store_vec(float* row, int v, Vec vec) {
    reinterpret_cast<Vec*>(row)[v] = vec;
}

// The elements between a vector's boundary and the row that starts behind it.
__device__ __forceinline__ int vec_shift(const float* row) {
    return reinterpret_cast<uintptr_t>(row) % alignof(Vec) / sizeof(float);
}

// This thread's part of the row, in vectors from the boundary at or below its start, of which the
// first alone can begin before it. Columns of other rows read as -inf, and exp(-inf - m) adds
// nothing.
__device__ __forceinline__ void load_row(float (&values)[SLOTS], const float* __restrict__ x,
    int cols, int shift) {
    const float* boundary = x - shift;
    const int end = shift + cols;
    const int vecs = end / VEC_SIZE;
#pragma unroll
    for (int k = 0; k < TAIL_SLOTS; ++k) {
        const int c = vecs * VEC_SIZE + threadIdx.x + k * THREADS_PER_BLOCK;
        values[k] = shift <= c && c < end ? boundary[c] : -INFINITY;
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
            const Vec vec = load_vec(boundary, v);
#pragma unroll
            for (int k = 0; k < VEC_SIZE; ++k) {
                if (i > 0 || v * VEC_SIZE + k >= shift) slot[k] = vec.at[k];
            }
        }
    }
}

// The slots go back to the columns that load_row took them from.
__device__ __forceinline__ void store_row(const float (&values)[SLOTS], float* __restrict__ y,
    int cols, int shift) {
    const bool has_same_shift = is_vec_aligned(y - shift);
    float* boundary = y - shift;
    const int end = shift + cols;
    const int vecs = end / VEC_SIZE;
#pragma unroll
    for (int k = 0; k < TAIL_SLOTS; ++k) {
        const int c = vecs * VEC_SIZE + threadIdx.x + k * THREADS_PER_BLOCK;
        if (shift <= c && c < end) boundary[c] = values[k];
    }
#pragma unroll
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
        const int v = threadIdx.x + i * THREADS_PER_BLOCK;
        const float* slot = values + TAIL_SLOTS + i * VEC_SIZE;
        if (v < vecs && has_same_shift && (i > 0 || v * VEC_SIZE >= shift)) {
            Vec vec;
#pragma unroll
            for (int k = 0; k < VEC_SIZE; ++k) {
                vec.at[k] = slot[k];
            }
            store_vec(boundary, v, vec);
        } else if (v < vecs) {  // the start of the row, or another alignment than the input's
#pragma unroll
            for (int k = 0; k < VEC_SIZE; ++k) {
                if (i > 0 || v * VEC_SIZE + k >= shift) boundary[v * VEC_SIZE + k] = slot[k];
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_v11(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int row = blockIdx.x;
    const size_t row_start = static_cast<size_t>(row) * cols;
    const float* x_row = x + row_start;
    float* y_row = y + row_start;
    const int shift = vec_shift(x_row);
    float values[SLOTS];
    load_row(values, x_row, cols, shift);

    // Passes 1 and 2: each warp sums against its own maximum, and the reduction rescales.
    float thread_max = -FLT_MAX;
#pragma unroll
    for (int k = 0; k < SLOTS; ++k) {
        thread_max = fmaxf(thread_max, values[k]);
    }
    const float warp_max = warp_reduce<Max, WARP_SIZE>(thread_max, WHOLE_WARP);
    float thread_sum = 0.0f;
#pragma unroll
    for (int k = 0; k < SLOTS; ++k) {
        values[k] = exp_as_exp2(values[k] - warp_max);
        thread_sum += values[k];
    }
    const float warp_sum = warp_reduce<Sum, WARP_SIZE>(thread_sum, WHOLE_WARP);
    const State row_state = row_reduce({warp_max, warp_sum});

    // Pass 3: the output, from the exponentials in registers.
    const float rescale = exp_as_exp2(warp_max - row_state.m);
    const float inverse_sum = 1.0f / row_state.d;
#pragma unroll
    for (int k = 0; k < SLOTS; ++k) {
        values[k] = values[k] * rescale * inverse_sum;
    }
    store_row(values, y_row, cols, shift);
}
