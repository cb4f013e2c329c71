// softmax_cpu: serial code for the host, three passes, exponentials parked in the output
//
//   y[r][c] = exp(x - row_max) / row_sum
//   with x = x[r][c], row_max the largest x of row r and row_sum the sum of its exp(x - row_max)
//   x and y are rows x cols, float32, row-major.
//
// variant   cpu
// spec      op=softmax dtype=float32 out_dtype=float32 target=host threads_per_row=1 rows_at_once=1
//           row_split=none blocks_per_row=1 row_order=interleaved row_loop=once row_io=direct
//           next_row=none topology=none merge=separate update=three_pass cache=exps_output
//           vec_size=1 vec_scans=none unaligned=scalar_row loads=plain stores=plain prefetch=false
//           items_per_thread=auto trip=static tile_size=auto threads_per_block=1 grid_blocks=auto
//           min_blocks_per_sm=auto exp=expf normalize=reciprocal static_cols=auto
// parent    none
// requires  rows >= 1, 1 <= cols <= 2147221504, x and y aligned to 4 bytes
// launch    softmax_cpu(x, y, rows, cols)
// rebuild   kgen build --variant cpu
//           (kgen 0.1.0, templates 83daa7fc)

#include <cfloat>
#include <cmath>
#include <cstddef>

extern "C" void softmax_cpu(const float* x, float* y, int rows, int cols) {
    for (int row = 0; row < rows; ++row) {
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
        const float inverse_sum = 1.0f / row_sum;
        for (int c = 0; c < cols; ++c) {
            y_row[c] = y_row[c] * inverse_sum;
        }
    }
}
