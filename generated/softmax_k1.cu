// softmax_k1: one thread per row, three passes, exponentials parked in the output
//
//   y[r][c] = exp(x[r][c] - max_r) / sum_c exp(x[r][c] - max_r)
//   x and y are rows x cols, float32, row-major.
//
// variant   k1
// spec      row_map=thread topology=none merge=separate update=three_pass cache=exps_output
//           vec_size=1 vec_scans=none unaligned=scalar_row prefetch=false items_per_thread=auto
//           trip=static tile_size=auto threads_per_block=512 grid_blocks=auto
//           min_blocks_per_sm=auto exp=expf normalize=divide static_cols=auto
// parent    cpu: row_map host -> thread, threads_per_block 1 -> 512, normalize reciprocal -> divide
// requires  rows >= 1, 1 <= cols <= 2147221504, x and y aligned to 4 bytes
// launch    grid = ceil(rows / 512), block = 512
//           dynamic shared memory = 0 bytes
// rebuild   kgen build --variant k1
//           (kgen 0.1.0, templates c5d54bb2)

#include <cfloat>
#include <cmath>
#include <cstddef>

constexpr int THREADS_PER_BLOCK = 512;

// The maximum of the row's elements. It starts at -FLT_MAX, not -inf: no scan then computes
// (-inf) - (-inf), and a row of -inf still ends as 0 / 0, which is NaN.
__device__ __forceinline__ float thread_max(const float* __restrict__ x, int cols) {
    float m = -FLT_MAX;
    for (int c = 0; c < cols; ++c) {
        m = fmaxf(m, x[c]);
    }
    return m;
}

// The sum of exp(x - m) over the row's elements, each kept for the writing scan.
__device__ __forceinline__ float thread_sum(const float* __restrict__ x, float* __restrict__ y,
    int cols, float m) {
    float d = 0.0f;
    for (int c = 0; c < cols; ++c) {
        const float v = expf(x[c] - m);
        y[c] = v;
        d += v;
    }
    return d;
}

// The writing scan: normalise from the exponentials parked in y.
__device__ __forceinline__ void write_row(float* __restrict__ y, int cols, float row_sum) {
    for (int c = 0; c < cols; ++c) {
        y[c] = y[c] / row_sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_k1(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int row = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (row >= rows) return;
    const size_t row_start = static_cast<size_t>(row) * cols;
    const float* x_row = x + row_start;
    float* y_row = y + row_start;

    // Pass 1: the row's maximum. Pass 2: its sum of exponentials, each of them kept.
    const float row_max = thread_max(x_row, cols);
    const float row_sum = thread_sum(x_row, y_row, cols, row_max);

    // Pass 3: normalise.
    write_row(y_row, cols, row_sum);
}
