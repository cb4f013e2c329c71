// softmax_v12: 16 threads per row, the block's rows copied to shared memory and back as one chunk,
// three passes, exponentials kept in registers, shuffles in one warp
//
//   y[r][c] = exp(x - row_max) / row_sum
//   with x = x[r][c], row_max the largest x of row r and row_sum the sum of its exp(x - row_max)
//   x and y are rows x cols, float32, row-major.
//
// variant   v12
// spec      op=softmax dtype=float32 out_dtype=float32 target=device threads_per_row=16
//           rows_at_once=1 row_split=none blocks_per_row=1 row_order=interleaved row_loop=once
//           row_io=chunk next_row=none topology=warp merge=separate update=three_pass
//           cache=exps_registers vec_size=1 vec_scans=none unaligned=scalar_row loads=plain
//           stores=plain prefetch=false items_per_thread=20 trip=static tile_size=auto
//           threads_per_block=128 grid_blocks=auto min_blocks_per_sm=auto exp=exp2
//           normalize=reciprocal static_cols=auto
// parent    v10: row_io direct -> chunk, merge paired -> separate, update online_shared ->
//           three_pass, cache inputs_registers -> exps_registers, vec_size 4 -> 1, vec_scans both
//           -> none, unaligned scalar_groups -> scalar_row, items_per_thread 4 -> 20,
//           threads_per_block 256 -> 128, exp expf -> exp2
// requires  rows >= 1, 1 <= cols <= 320, x and y aligned to 4 bytes (y is written by vectors where
//           it is as far from a boundary of 16 as x)
// launch    grid = ceil(rows / 8), block = 128
//           dynamic shared memory = 4 * (8 * cols - 1) + 16 bytes
// rebuild   kgen build --variant v12
//           (kgen 0.1.0, templates 83daa7fc)

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>

constexpr int THREADS_PER_BLOCK = 128;
constexpr int THREADS_PER_ROW = 16;
constexpr int ROWS_PER_BLOCK = THREADS_PER_BLOCK / THREADS_PER_ROW;
constexpr int ITEMS_PER_THREAD = 20;
constexpr unsigned WHOLE_WARP = 0xffffffffu;

// e^t as a power of two. The maximum is subtracted before the scaling: folded into one fused
// multiply-add, m * log2(e) overflows near FLT_MAX and loses digits where |x| is large.
__device__ __forceinline__ float exp_as_exp2(float t) {
    constexpr float LOG2_E = 1.4426950408889634f;
    return exp2f(t * LOG2_E);
}

// The reductions of a row: how they combine two values.
struct Max {
    static __device__ float combine(float a, float b) { return fmaxf(a, b); }
};

struct Sum {
    static __device__ float combine(float a, float b) { return a + b; }
};

// The elements of a 16-byte access, and such accesses of a thread that are on their way at once.
constexpr int WIDE = 4;
constexpr int BATCH = 4;

// The block's rows. Between 16-byte boundaries an element has the same place here as in x.
extern __shared__ __align__(16) float chunk_space[];

// The elements between a 16-byte boundary and a place behind it.
__device__ __forceinline__ int past_boundary(const float* place) {
    return reinterpret_cast<uintptr_t>(place) % sizeof(uint4) / sizeof(float);
}

// The elements of a chunk before its first 16-byte boundary.
__device__ __forceinline__ int head_of(const float* chunk) {
    return (WIDE - past_boundary(chunk)) % WIDE;
}

// How many 16-byte accesses copy what is behind the head: none where the other side has its
// boundaries at other elements.
__device__ __forceinline__ int wide_accesses(const float* to, const float* from, int size) {
    return past_boundary(to) == past_boundary(from) ? (size - head_of(from)) / WIDE : 0;
}

// The block copies what no such access does: the head, and what is left at the end.
__device__ __forceinline__ void copy_edges(float* to, const float* from, int size, int head,
    int vecs) {
    for (int e = threadIdx.x; e < size - vecs * WIDE; e += THREADS_PER_BLOCK) {
        const int c = e < head ? e : e + vecs * WIDE;
        to[c] = from[c];
    }
}

// The block copies `size` elements, by 16 bytes where it can.
__device__ __forceinline__ void copy_chunk(float* __restrict__ to, const float* __restrict__ from,
    int size) {
    const int head = head_of(from);
    const int vecs = wide_accesses(to, from, size);
    const uint4* from_vecs = reinterpret_cast<const uint4*>(from + head);
    uint4* to_vecs = reinterpret_cast<uint4*>(to + head);
#pragma unroll 1
    for (int first = threadIdx.x; first < vecs; first += BATCH * THREADS_PER_BLOCK) {
        uint4 batch[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            const int v = first + k * THREADS_PER_BLOCK;
            if (v < vecs) batch[k] = from_vecs[v];
        }
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            const int v = first + k * THREADS_PER_BLOCK;
            if (v < vecs) to_vecs[v] = batch[k];
        }
    }
    copy_edges(to, from, size, head, vecs);
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

// The threads of a row are lanes of one warp, so shuffles alone reach all of them.
template <typename Op>
__device__ __forceinline__ float row_reduce(float value) {
    return warp_reduce<Op, THREADS_PER_ROW>(value, WHOLE_WARP);
}

// This thread's part of the row. Columns past the end read as -inf, and exp(-inf - m) adds nothing.
__device__ __forceinline__ void load_row(float (&values)[ITEMS_PER_THREAD],
    const float* __restrict__ x, int cols) {
#pragma unroll
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
        const int c = threadIdx.x % THREADS_PER_ROW + i * THREADS_PER_ROW;
        values[i] = c < cols ? x[c] : -INFINITY;
    }
}

// The slots go back to the columns that load_row took them from.
__device__ __forceinline__ void store_row(const float (&values)[ITEMS_PER_THREAD],
    float* __restrict__ y, int cols) {
#pragma unroll
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
        const int c = threadIdx.x % THREADS_PER_ROW + i * THREADS_PER_ROW;
        if (c < cols) y[c] = values[i];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_v12(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int first_row = blockIdx.x * ROWS_PER_BLOCK;
    const int row = first_row + threadIdx.x / THREADS_PER_ROW;
    const int row_cols = row < rows ? cols : 0;  // without a row, only barriers to meet
    const size_t chunk_start = static_cast<size_t>(first_row) * cols;
    const int chunk_size = min(ROWS_PER_BLOCK, rows - first_row) * cols;
    float* chunk = chunk_space + past_boundary(x + chunk_start);
    copy_chunk(chunk, x + chunk_start, chunk_size);
    __syncthreads();  // the chunk is complete
    float* y_row = chunk + (row - first_row) * cols;
    const float* x_row = y_row;  // the output takes the input's place
    float values[ITEMS_PER_THREAD];
    load_row(values, x_row, row_cols);

    // Pass 1: the row's maximum.
    float thread_max = -FLT_MAX;
#pragma unroll
    for (int k = 0; k < ITEMS_PER_THREAD; ++k) {
        thread_max = fmaxf(thread_max, values[k]);
    }
    const float row_max = row_reduce<Max>(thread_max);

    // Pass 2: the sum of the exponentials, each of them kept.
    float thread_sum = 0.0f;
#pragma unroll
    for (int k = 0; k < ITEMS_PER_THREAD; ++k) {
        values[k] = exp_as_exp2(values[k] - row_max);
        thread_sum += values[k];
    }
    const float row_sum = row_reduce<Sum>(thread_sum);

    // Pass 3: the output, from the exponentials in registers.
    const float inverse_sum = 1.0f / row_sum;
#pragma unroll
    for (int k = 0; k < ITEMS_PER_THREAD; ++k) {
        values[k] = values[k] * inverse_sum;
    }
    store_row(values, y_row, row_cols);

    __syncthreads();  // all of the output is there
    copy_chunk(y + chunk_start, chunk, chunk_size);
}
