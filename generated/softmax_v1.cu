// softmax_v1: one block per row, three passes, shared-memory tree
//
//   y[r][c] = exp(x - row_max) / row_sum
//   with x = x[r][c], row_max the largest x of row r and row_sum the sum of its exp(x - row_max)
//   x and y are rows x cols, float32, row-major.
//
// variant   v1
// spec      op=softmax dtype=float32 out_dtype=float32 target=device threads_per_row=auto
//           rows_at_once=1 row_split=none blocks_per_row=1 row_order=interleaved row_loop=once
//           row_io=direct next_row=none topology=tree merge=separate update=three_pass cache=none
//           vec_size=1 vec_scans=none unaligned=scalar_row loads=plain stores=plain prefetch=false
//           items_per_thread=auto trip=static tile_size=auto threads_per_block=256 grid_blocks=auto
//           min_blocks_per_sm=auto exp=expf normalize=reciprocal static_cols=auto
// parent    none
// requires  rows >= 1, 1 <= cols <= 2147221504, x and y aligned to 4 bytes
// launch    grid = rows, block = 256
//           dynamic shared memory = 0 bytes
// rebuild   kgen build --variant v1
//           (kgen 0.1.0, templates 83daa7fc)

#include <cfloat>
#include <cmath>
#include <cstddef>

constexpr int THREADS_PER_BLOCK = 256;

// The reductions of a row: how they combine two values.
struct Max {
    static __device__ float combine(float a, float b) { return fmaxf(a, b); }
};

struct Sum {
    static __device__ float combine(float a, float b) { return a + b; }
};

// One array for all reductions of a kernel.
__device__ __forceinline__ float* shared_values() {
    __shared__ float values[THREADS_PER_BLOCK];
    return values;
}

// Half of the threads add the other half's results to theirs, until one is left.
template <typename Op>
__device__ __forceinline__ float row_reduce(float value) {
    float* partial = shared_values();
    const int thread = threadIdx.x;

    partial[thread] = value;
    __syncthreads();  // every thread's value is visible
    for (int half = THREADS_PER_BLOCK / 2; half > 0; half /= 2) {
        if (thread < half) partial[thread] = Op::combine(partial[thread], partial[thread + half]);
        __syncthreads();  // this halving is complete before the next one reads it
    }
    return partial[0];
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_v1(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int row = blockIdx.x;
    const size_t row_start = static_cast<size_t>(row) * cols;
    const float* x_row = x + row_start;
    float* y_row = y + row_start;

    // Pass 1: the row's maximum.
    float thread_max = -FLT_MAX;
    for (int c = threadIdx.x; c < cols; c += THREADS_PER_BLOCK) {
        thread_max = fmaxf(thread_max, x_row[c]);
    }
    const float row_max = row_reduce<Max>(thread_max);

    // Pass 2: the sum of the exponentials.
    float thread_sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += THREADS_PER_BLOCK) {
        thread_sum += expf(x_row[c] - row_max);
    }
    __syncthreads();  // all have read the result before the next reduction writes there
    const float row_sum = row_reduce<Sum>(thread_sum);

    // Pass 3: the output.
    const float inverse_sum = 1.0f / row_sum;
    for (int c = threadIdx.x; c < cols; c += THREADS_PER_BLOCK) {
        y_row[c] = expf(x_row[c] - row_max) * inverse_sum;
    }
}
