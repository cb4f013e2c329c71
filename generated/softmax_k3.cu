// softmax_k3: one block per row, three passes, exponentials parked in the output, shuffles down one
// warp
//
//   y[r][c] = exp(x - row_max) / row_sum
//   with x = x[r][c], row_max the largest x of row r and row_sum the sum of its exp(x - row_max)
//   x and y are rows x cols, float32, row-major.
//
// variant   k3
// spec      op=softmax dtype=float32 out_dtype=float32 target=device threads_per_row=auto
//           rows_at_once=1 row_split=none blocks_per_row=1 row_order=interleaved row_loop=once
//           row_io=direct next_row=none topology=warp_down merge=separate update=three_pass
//           cache=exps_output vec_size=1 vec_scans=none unaligned=scalar_row loads=plain
//           stores=plain prefetch=false items_per_thread=auto trip=static tile_size=auto
//           threads_per_block=32 grid_blocks=auto min_blocks_per_sm=auto exp=expf normalize=divide
//           static_cols=auto
// parent    k2: topology tree -> warp_down, threads_per_block 512 -> 32
// requires  rows >= 1, 1 <= cols <= 2147221504, x and y aligned to 4 bytes
// launch    grid = rows, block = 32
//           dynamic shared memory = 0 bytes
// rebuild   kgen build --variant k3
//           (kgen 0.1.0, templates 83daa7fc)

#include <cfloat>
#include <cmath>
#include <cstddef>

constexpr int THREADS_PER_BLOCK = 32;
constexpr unsigned WHOLE_WARP = 0xffffffffu;

// The reductions of a row: how they combine two values.
struct Max {
    static __device__ float combine(float a, float b) { return fmaxf(a, b); }
};

struct Sum {
    static __device__ float combine(float a, float b) { return a + b; }
};

// The first of WIDTH neighbours combines the values of all of them, and hands the result to the
// others; `lanes` are those that take part.
template <typename Op, int WIDTH>
__device__ __forceinline__ float warp_reduce(float value, unsigned lanes) {
#pragma unroll
    for (int offset = WIDTH / 2; offset > 0; offset /= 2) {
        value = Op::combine(value, __shfl_down_sync(lanes, value, offset, WIDTH));
    }
    return __shfl_sync(lanes, value, 0, WIDTH);
}

// The threads of a row are lanes of one warp, so shuffles alone reach all of them.
template <typename Op>
__device__ __forceinline__ float row_reduce(float value) {
    return warp_reduce<Op, THREADS_PER_BLOCK>(value, WHOLE_WARP);
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_k3(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
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

    // Pass 2: the sum of the exponentials, each of them kept.
    float thread_sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += THREADS_PER_BLOCK) {
        const float element = expf(x_row[c] - row_max);
        y_row[c] = element;
        thread_sum += element;
    }
    const float row_sum = row_reduce<Sum>(thread_sum);

    // Pass 3: the output, from the exponentials parked in y.
    for (int c = threadIdx.x; c < cols; c += THREADS_PER_BLOCK) {
        y_row[c] = y_row[c] / row_sum;
    }
}
