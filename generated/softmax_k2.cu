// softmax_k2: one block per row, three passes, exponentials parked in the output, shared-memory
// tree
//
//   y[r][c] = exp(x[r][c] - max_r) / sum_c exp(x[r][c] - max_r)
//   x and y are rows x cols, float32, row-major.
//
// variant   k2
// spec      row_map=block topology=tree merge=separate update=three_pass cache=exps_output
//           vec_size=1 vec_scans=none unaligned=scalar_row prefetch=false items_per_thread=auto
//           trip=static tile_size=auto threads_per_block=512 grid_blocks=auto
//           min_blocks_per_sm=auto exp=expf normalize=divide static_cols=auto
// parent    k1: row_map thread -> block, topology none -> tree
// requires  rows >= 1, 1 <= cols <= 2147221504, x and y aligned to 4 bytes
// launch    grid = rows, block = 512
//           dynamic shared memory = 0 bytes
// rebuild   kgen build --variant k2
//           (kgen 0.1.0, templates c5d54bb2)

#include <cfloat>
#include <cmath>
#include <cstddef>

constexpr int THREADS_PER_BLOCK = 512;

// What row_reduce combines.
struct Max {
    using Value = float;
    static __device__ float combine(float a, float b) { return fmaxf(a, b); }
};

struct Sum {
    using Value = float;
    static __device__ float combine(float a, float b) { return a + b; }
};

// One array for all reductions of a kernel.
template <typename Value>
__device__ __forceinline__ Value* shared_values() {
    __shared__ Value values[THREADS_PER_BLOCK];
    return values;
}

// topology=tree: half of the threads add the other half's results to theirs, until one is left.
// All threads of the row get the result; on return the function may be called again.
template <typename Op>
__device__ __forceinline__ typename Op::Value row_reduce(typename Op::Value value) {
    typename Op::Value* partial = shared_values<typename Op::Value>();
    const int thread = threadIdx.x;

    partial[thread] = value;
    __syncthreads();  // every thread's value is visible
    for (int half = THREADS_PER_BLOCK / 2; half > 0; half /= 2) {
        if (thread < half) partial[thread] = Op::combine(partial[thread], partial[thread + half]);
        __syncthreads();  // this halving is complete before the next one reads it
    }
    value = partial[0];
    __syncthreads();  // everybody has read before anybody may write again
    return value;
}

// The maximum of this thread's elements. It starts at -FLT_MAX, not -inf: no scan then computes
// (-inf) - (-inf), and a row of -inf still ends as 0 / 0, which is NaN.
__device__ __forceinline__ float thread_max(const float* __restrict__ x, int cols) {
    float m = -FLT_MAX;
    for (int c = threadIdx.x; c < cols; c += THREADS_PER_BLOCK) {
        m = fmaxf(m, x[c]);
    }
    return m;
}

// The sum of exp(x - m) over this thread's elements, each kept for the writing scan.
__device__ __forceinline__ float thread_sum(const float* __restrict__ x, float* __restrict__ y,
    int cols, float m) {
    float d = 0.0f;
    for (int c = threadIdx.x; c < cols; c += THREADS_PER_BLOCK) {
        const float v = expf(x[c] - m);
        y[c] = v;
        d += v;
    }
    return d;
}

// The writing scan: normalise from the exponentials parked in y.
__device__ __forceinline__ void write_row(float* __restrict__ y, int cols, float row_sum) {
    for (int c = threadIdx.x; c < cols; c += THREADS_PER_BLOCK) {
        y[c] = y[c] / row_sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_k2(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int row = blockIdx.x;
    const size_t row_start = static_cast<size_t>(row) * cols;
    const float* x_row = x + row_start;
    float* y_row = y + row_start;

    // Pass 1: the row's maximum. Pass 2: its sum of exponentials, each of them kept.
    const float row_max = row_reduce<Max>(thread_max(x_row, cols));
    const float row_sum = row_reduce<Sum>(thread_sum(x_row, y_row, cols, row_max));

    // Pass 3: normalise.
    write_row(y_row, cols, row_sum);
}
