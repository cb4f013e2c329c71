// softmax_cpu: serial code for the host, three passes, exponentials parked in the output
//
//   y[r][c] = exp(x[r][c] - max_r) / sum_c exp(x[r][c] - max_r)
//   x and y are rows x cols, float32, row-major.
//
// variant   cpu
// spec      row_map=host topology=none merge=separate update=three_pass cache=exps_output
//           vec_size=1 vec_scans=none unaligned=scalar_row prefetch=false items_per_thread=auto
//           trip=static tile_size=auto threads_per_block=1 grid_blocks=auto min_blocks_per_sm=auto
//           exp=expf normalize=reciprocal static_cols=auto
// parent    none
// requires  rows >= 1, 1 <= cols <= 2147221504, x and y aligned to 4 bytes
// launch    softmax_cpu(x, y, rows, cols)
// rebuild   kgen build --variant cpu
//           (kgen 0.1.0, templates c5d54bb2)

#include <cfloat>
#include <cmath>
#include <cstddef>

// The maximum of the row's elements. It starts at -FLT_MAX, not -inf: no scan then computes
// (-inf) - (-inf), and a row of -inf still ends as 0 / 0, which is NaN.
static inline float thread_max(const float* x, int cols) {
    float m = -FLT_MAX;
    for (int c = 0; c < cols; ++c) {
        m = fmaxf(m, x[c]);
    }
    return m;
}

// The sum of exp(x - m) over the row's elements, each kept for the writing scan.
static inline float thread_sum(const float* x, float* y, int cols, float m) {
    float d = 0.0f;
    for (int c = 0; c < cols; ++c) {
        const float v = expf(x[c] - m);
        y[c] = v;
        d += v;
    }
    return d;
}

// The writing scan: normalise from the exponentials parked in y.
static inline void write_row(float* y, int cols, float row_sum) {
    const float inverse_sum = 1.0f / row_sum;
    for (int c = 0; c < cols; ++c) {
        y[c] = y[c] * inverse_sum;
    }
}

extern "C" void softmax_cpu(const float* x, float* y, int rows, int cols) {
    for (int row = 0; row < rows; ++row) {
        const size_t row_start = static_cast<size_t>(row) * cols;
        const float* x_row = x + row_start;
        float* y_row = y + row_start;

        // Pass 1: the row's maximum. Pass 2: its sum of exponentials, each of them kept.
        const float row_max = thread_max(x_row, cols);
        const float row_sum = thread_sum(x_row, y_row, cols, row_max);

        // Pass 3: normalise.
        write_row(y_row, cols, row_sum);
    }
}
