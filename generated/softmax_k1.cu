// softmax_k1: one thread per row, three passes, exponentials parked in the output
//
//   y[r][c] = exp(x - row_max) / row_sum
//   with x = x[r][c], row_max the largest x of row r and row_sum the sum of its exp(x - row_max)
//   x and y are rows x cols, float32, row-major.
//
// variant   k1
// spec      op=softmax dtype=float32 out_dtype=float32 target=device threads_per_row=1
//           rows_at_once=1 row_split=none blocks_per_row=1 row_order=interleaved row_loop=once
//           row_io=direct next_row=none topology=none merge=separate update=three_pass
//           cache=exps_output vec_size=1 vec_scans=none unaligned=scalar_row loads=plain
//           stores=plain prefetch=false items_per_thread=auto trip=static tile_size=auto
//           threads_per_block=512 grid_blocks=auto min_blocks_per_sm=auto exp=expf normalize=divide
//           static_cols=auto
// parent    cpu: target host -> device, threads_per_block 1 -> 512, normalize reciprocal -> divide
// requires  rows >= 1, 1 <= cols <= 2147221504, x and y aligned to 4 bytes
// launch    grid = ceil(rows / 512), block = 512
//           dynamic shared memory = 0 bytes
// rebuild   kgen build --variant k1
//           (kgen 0.1.0, templates 83daa7fc)

#include <cfloat>
#include <cmath>
#include <cstddef>

constexpr int THREADS_PER_BLOCK = 512;

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_k1(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int row = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (row >= rows) return;  // all threads of a row leave together
    const size_t row_start = static_cast<size_t>(row) * cols;
    const float* x_row = x + row_start;
    float* y_row = y + row_start;

    // Pass 1: the row's maximum.
    float thread_max = -FLT_MAX;
    for (int c = 0; c < cols; ++c) {
        thread_max = fmaxf(thread_max, x_row[c]);
    }
    const float row_max = thread_max;

    // Pass 2: the sum of the exponentials, each of them kept.
    float thread_sum = 0.0f;
    for (int c = 0; c < cols; ++c) {
        const float element = expf(x_row[c] - row_max);
        y_row[c] = element;
        thread_sum += element;
    }
    const float row_sum = thread_sum;

    // Pass 3: the output, from the exponentials parked in y.
    for (int c = 0; c < cols; ++c) {
        y_row[c] = y_row[c] / row_sum;
    }
}
