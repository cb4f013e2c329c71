// What each row of a large output is off by, against float64: a block for a row, and further ones.
// Defined are the ELEMENT of the output and TO_DOUBLE(x), what it is; ERROR_SCALE(y, y_max), what an
// error is relative to, of the expected element and its row's largest; SLACK(y), how far rounding
// may take it; the THREADS of a block and the ERRORS of a row: the relative one, its column, the
// absolute one, that of the row's sum.

#include <cmath>

struct Max {
    static __device__ double combine(double a, double b) { return fmax(a, b); }
};

struct Min {
    static __device__ double combine(double a, double b) { return fmin(a, b); }
};

struct Sum {
    static __device__ double combine(double a, double b) { return a + b; }
};

// All threads of the block get the result.
template <typename Op>
__device__ double reduce(double value) {
    __shared__ double values[THREADS];
    values[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            values[threadIdx.x] = Op::combine(values[threadIdx.x], values[threadIdx.x + half]);
        }
        __syncthreads();
    }
    const double result = values[0];
    __syncthreads();  // all have read before the next call writes
    return result;
}

// Where one of the two is not finite, only the same value is right.
__device__ double error_of(double got, double expected) {
    if (isfinite(got) && isfinite(expected)) return fmax(fabs(got - expected) - SLACK(expected), 0.0);
    return got == expected || (isnan(got) && isnan(expected)) ? 0.0 : INFINITY;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    judge(const ELEMENT* __restrict__ y, const double* __restrict__ expected,
        double* __restrict__ errors, int rows, int cols) {
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        const ELEMENT* got_row = y + static_cast<size_t>(row) * cols;
        const double* expected_row = expected + static_cast<size_t>(row) * cols;

        double largest = -INFINITY;
        double is_finite = 1.0;
        for (int c = threadIdx.x; c < cols; c += THREADS) {
            largest = fmax(largest, expected_row[c]);
            if (!isfinite(expected_row[c])) is_finite = 0.0;
        }
        const double y_max = reduce<Max>(largest);
        is_finite = reduce<Min>(is_finite);

        double relative = -1.0, absolute = 0.0, sum = 0.0;
        int col = cols;
        for (int c = threadIdx.x; c < cols; c += THREADS) {
            const double got = TO_DOUBLE(got_row[c]);
            const double error = error_of(got, expected_row[c]);
            const double scale = isfinite(expected_row[c]) ? ERROR_SCALE(expected_row[c], y_max) : 1.0;
            if (error / scale > relative) {
                relative = error / scale;
                col = c;
            }
            absolute = fmax(absolute, error);
            sum += got;
        }
        const double worst = reduce<Max>(relative);
        const double first = reduce<Min>(relative == worst ? col : cols);
        absolute = reduce<Max>(absolute);
        sum = reduce<Sum>(sum);
        if (threadIdx.x == 0) {
            double* of_row = errors + static_cast<size_t>(row) * ERRORS;
            of_row[0] = worst;
            of_row[1] = first;
            of_row[2] = absolute;
            of_row[3] = is_finite && !isnan(sum) ? fabs(sum - 1.0) : 0.0;
        }
    }
}
