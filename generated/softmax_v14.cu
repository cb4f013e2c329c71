// softmax_v14: 32 blocks per row, which meet in global memory in one launch, three passes,
// exponentials kept in registers, each warp merges the (maximum, sum) pairs of all warps, 16-byte
// accesses in all scans
//
//   y[r][c] = exp(x - row_max) / row_sum
//   with x = x[r][c], row_max the largest x of row r and row_sum the sum of its exp(x - row_max)
//   x and y are rows x cols, float32, row-major.
//
// variant   v14
// spec      op=softmax dtype=float32 out_dtype=float32 target=device threads_per_row=auto
//           rows_at_once=1 row_split=co_resident blocks_per_row=32 row_order=interleaved
//           row_loop=once row_io=direct next_row=none topology=all_warps merge=by_warp
//           update=three_pass cache=exps_registers vec_size=4 vec_scans=both unaligned=scalar_row
//           loads=plain stores=plain prefetch=false items_per_thread=1 trip=static tile_size=auto
//           threads_per_block=128 grid_blocks=auto min_blocks_per_sm=auto exp=exp2
//           normalize=reciprocal static_cols=auto
// parent    v13: row_split cluster_async -> co_resident, blocks_per_row 8 -> 32
// requires  rows >= 1, 1 <= cols <= 16387, x and y aligned to 4 bytes (rows aligned to 16 use
//           vectors)
// launch    grid = rows * 32, block = 128
//           dynamic shared memory = 0 bytes
//           all blocks have to run at the same time
//           messages: 16 * rows * 32 * 32 bytes, zeroed once, before the first launch
//           launch: not 0, nor the number of a launch before that was broken off
// rebuild   kgen build --variant v14
//           (kgen 0.1.0, templates 83daa7fc)

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cuda/atomic>

constexpr int THREADS_PER_BLOCK = 128;
constexpr int WARP_SIZE = 32;
constexpr int BLOCKS_PER_ROW = 32;
constexpr int THREADS_PER_ROW = BLOCKS_PER_ROW * THREADS_PER_BLOCK;
constexpr int WARPS_PER_BLOCK = THREADS_PER_BLOCK / WARP_SIZE;
constexpr int VEC_SIZE = 4;
constexpr int ITEMS_PER_THREAD = 1;
constexpr int TAIL_SLOTS = 1;  // for the columns that no vector covers
constexpr int SLOTS = TAIL_SLOTS + ITEMS_PER_THREAD * VEC_SIZE;
constexpr unsigned WHOLE_WARP = 0xffffffffu;

// This thread's index among the threads of all blocks of its row.
__device__ __forceinline__ int row_thread() {
    return blockIdx.x % BLOCKS_PER_ROW * THREADS_PER_BLOCK + threadIdx.x;
}

// e^t as a power of two. The maximum is subtracted before the scaling: folded into one fused
// multiply-add, m * log2(e) overflows near FLT_MAX and loses digits where |x| is large.
__device__ __forceinline__ float exp_as_exp2(float t) {
    constexpr float LOG2_E = 1.4426950408889634f;
    return exp2f(t * LOG2_E);
}

// What is known of a set of elements: m is their maximum, d the sum of exp(x - m).
struct alignas(2 * sizeof(float)) State {
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

// Words of global memory, each with 32 bits of a state and the number of the launch: whoever finds
// the number has what was written with it, so there is nothing to count or to fence.
constexpr int STATE_WORDS = sizeof(State) / sizeof(unsigned);

struct Message {
    unsigned long long words[STATE_WORDS];
};

using Word = cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>;

__device__ __forceinline__ void send(Message& slot, State state, unsigned launch) {
    const unsigned* bits = reinterpret_cast<const unsigned*>(&state);
#pragma unroll
    for (int k = 0; k < STATE_WORDS; ++k) {
        const unsigned long long word = static_cast<unsigned long long>(launch) << 32 | bits[k];
        Word(slot.words[k]).store(word, cuda::memory_order_relaxed);
    }
}

// Waits for the words of this launch, and clears them, so that the number may come again.
__device__ __forceinline__ State receive(Message& slot, unsigned launch) {
    State state;
    unsigned* bits = reinterpret_cast<unsigned*>(&state);
#pragma unroll
    for (int k = 0; k < STATE_WORDS; ++k) {
        unsigned long long word;
        do {
            word = Word(slot.words[k]).load(cuda::memory_order_relaxed);
        } while (word >> 32 != launch);
        Word(slot.words[k]).store(0, cuda::memory_order_relaxed);
        bits[k] = static_cast<unsigned>(word);
    }
    return state;
}

// Every lane gets the value of its group of WIDTH neighbours; `lanes` are those that take part.
template <typename Op, int WIDTH>
__device__ __forceinline__ float warp_reduce(float value, unsigned lanes) {
#pragma unroll
    for (int offset = WIDTH / 2; offset > 0; offset /= 2) {
        value = Op::combine(value, __shfl_xor_sync(lanes, value, offset));
    }
    return value;
}

// The states of all blocks of the row.
__shared__ State row_states[BLOCKS_PER_ROW];

// The state of this block, which all its threads get.
__device__ __forceinline__ State block_reduce(State own) {
    __shared__ State warp_states[WARPS_PER_BLOCK];
    if (threadIdx.x % WARP_SIZE == 0) warp_states[threadIdx.x / WARP_SIZE] = own;
    __syncthreads();  // every warp's state is visible
    const int other = threadIdx.x % WARPS_PER_BLOCK;
    const State state = warp_states[other];
    const float m = warp_reduce<Max, WARPS_PER_BLOCK>(state.m, WHOLE_WARP);
    return {m, warp_reduce<Sum, WARPS_PER_BLOCK>(state.d * exp_as_exp2(state.m - m), WHOLE_WARP)};
}

// All warps of the row get all these states, and each merges them. `own` is this warp's.
__device__ __forceinline__ State row_reduce(State own, Message* messages, unsigned launch) {
    const State block_state = block_reduce(own);
    if (threadIdx.x < BLOCKS_PER_ROW) {
        // Every block has a message of its own for every other one.
        const int rank = blockIdx.x % BLOCKS_PER_ROW;
        const size_t other = blockIdx.x - rank + threadIdx.x;
        send(messages[other * BLOCKS_PER_ROW + rank], block_state, launch);
        Message& message = messages[static_cast<size_t>(blockIdx.x) * BLOCKS_PER_ROW + threadIdx.x];
        row_states[threadIdx.x] = receive(message, launch);
    }
    __syncthreads();  // the states of all blocks have come
    const int other = threadIdx.x % BLOCKS_PER_ROW;
    const State state = row_states[other];
    const float m = warp_reduce<Max, BLOCKS_PER_ROW>(state.m, WHOLE_WARP);
    return {m, warp_reduce<Sum, BLOCKS_PER_ROW>(state.d * exp_as_exp2(state.m - m), WHOLE_WARP)};
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

// This thread's part of the row. Columns past the end read as -inf, and exp(-inf - m) adds nothing.
__device__ __forceinline__ void load_row(float (&values)[SLOTS], const float* __restrict__ x,
    int cols, bool is_aligned) {
    if (!is_aligned) {  // one column a slot
#pragma unroll
        for (int k = 0; k < SLOTS; ++k) {
            const int c = row_thread() + k * THREADS_PER_ROW;
            values[k] = c < cols ? x[c] : -INFINITY;
        }
        return;
    }
    const int vecs = cols / VEC_SIZE;
#pragma unroll
    for (int k = 0; k < TAIL_SLOTS; ++k) {
        const int c = vecs * VEC_SIZE + row_thread() + k * THREADS_PER_ROW;
        values[k] = c < cols ? x[c] : -INFINITY;
    }
#pragma unroll
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
        const int v = row_thread() + i * THREADS_PER_ROW;
        float* slot = values + TAIL_SLOTS + i * VEC_SIZE;
#pragma unroll
        for (int k = 0; k < VEC_SIZE; ++k) {
            slot[k] = -INFINITY;
        }
        if (v < vecs) {
            const Vec vec = load_vec(x, v);
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
    if (!is_aligned) {
#pragma unroll
        for (int k = 0; k < SLOTS; ++k) {
            const int c = row_thread() + k * THREADS_PER_ROW;
            if (c < cols) y[c] = values[k];
        }
        return;
    }
    const int vecs = cols / VEC_SIZE;
#pragma unroll
    for (int k = 0; k < TAIL_SLOTS; ++k) {
        const int c = vecs * VEC_SIZE + row_thread() + k * THREADS_PER_ROW;
        if (c < cols) y[c] = values[k];
    }
#pragma unroll
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
        const int v = row_thread() + i * THREADS_PER_ROW;
        const float* slot = values + TAIL_SLOTS + i * VEC_SIZE;
        Vec vec;
#pragma unroll
        for (int k = 0; k < VEC_SIZE; ++k) {
            vec.at[k] = slot[k];
        }
        if (v < vecs) store_vec(y, v, vec);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_v14(const float* __restrict__ x, float* __restrict__ y, Message* messages,
        unsigned launch, int rows, int cols) {
    const int row = blockIdx.x / BLOCKS_PER_ROW;
    const size_t row_start = static_cast<size_t>(row) * cols;
    const float* x_row = x + row_start;
    float* y_row = y + row_start;
    const bool is_aligned = is_vec_aligned(x_row) && is_vec_aligned(y_row);
    float values[SLOTS];
    load_row(values, x_row, cols, is_aligned);

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
    const State row_state = row_reduce({warp_max, warp_sum}, messages, launch);

    // Pass 3: the output, from the exponentials in registers.
    const float rescale = exp_as_exp2(warp_max - row_state.m);
    const float inverse_sum = 1.0f / row_state.d;
#pragma unroll
    for (int k = 0; k < SLOTS; ++k) {
        values[k] = values[k] * rescale * inverse_sum;
    }
    store_row(values, y_row, cols, is_aligned);
}
