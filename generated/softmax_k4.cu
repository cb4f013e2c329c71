// softmax_k4: one block per row, three passes, exponentials parked in the output, shuffles, then
// thread 0 over the warps
//
//   y[r][c] = exp(x - row_max) / row_sum
//   with x = x[r][c], row_max the largest x of row r and row_sum the sum of its exp(x - row_max)
//   x and y are rows x cols, float32, row-major.
//
// variant   k4
// spec      op=softmax dtype=float32 out_dtype=float32 target=device threads_per_row=auto
//           rows_at_once=1 row_split=none blocks_per_row=1 row_order=interleaved row_loop=once
//           row_io=direct next_row=none topology=warps_thread0 merge=separate update=three_pass
//           cache=exps_output vec_size=1 vec_scans=none unaligned=scalar_row loads=plain
//           stores=plain prefetch=false items_per_thread=auto trip=static tile_size=auto
//           threads_per_block=512 grid_blocks=auto min_blocks_per_sm=auto exp=expf normalize=divide
//           static_cols=auto
// parent    k2: topology tree -> warps_thread0
// requires  rows >= 1, 1 <= cols <= 2147221504, x and y aligned to 4 bytes
// launch    grid = rows, block = 512
//           dynamic shared memory = 0 bytes
// rebuild   kgen build --variant k4
//           (kgen 0.1.0, templates 83daa7fc)

#include <cfloat>
#include <cmath>
#include <cstddef>

constexpr int THREADS_PER_BLOCK = 512;
constexpr int WARP_SIZE = 32;
constexpr int WARPS_PER_BLOCK = THREADS_PER_BLOCK / WARP_SIZE;
constexpr unsigned WHOLE_WARP = 0xffffffffu;

// The reductions of a row: how they combine two values.
struct Max {
    static __device__ float combine(float a, float b) { return fmaxf(a, b); }
};

struct Sum {
    static __device__ float combine(float a, float b) { return a + b; }
};

// Every lane gets the value of its group of WIDTH neighbours; `lanes` are those that take part.
template <typename Op, int WIDTH>
__device__ __forceinline__ float warp_reduce(float value, unsigned lanes) {
#pragma unroll
    for (int offset = WIDTH / 2; offset > 0; offset /= 2) {
        value = Op::combine(value, __shfl_xor_sync(lanes, value, offset));
    }
    return value;
}

// One array for all reductions of a kernel.
__device__ __forceinline__ float* shared_values() {
    __shared__ float values[WARPS_PER_BLOCK];
    return values;
}

// Each warp reduces by shuffles, then the row's first thread walks the warps' results alone.
template <typename Op>
__device__ __forceinline__ float row_reduce(float value) {
    float* warp_values = shared_values();
    value = warp_reduce<Op, WARP_SIZE>(value, WHOLE_WARP);
    if (threadIdx.x % WARP_SIZE == 0) warp_values[threadIdx.x / WARP_SIZE] = value;
    __syncthreads();  // every warp's value is visible
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < WARPS_PER_BLOCK; ++warp) {
            value = Op::combine(value, warp_values[warp]);
        }
        warp_values[0] = value;
    }
    __syncthreads();  // the row's value is visible
    return warp_values[0];
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
    softmax_k4(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
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
    __syncthreads();  // all have read the result before the next reduction writes there
    const float row_sum = row_reduce<Sum>(thread_sum);

    // Pass 3: the output, from the exponentials parked in y.
    for (int c = threadIdx.x; c < cols; c += THREADS_PER_BLOCK) {
        y_row[c] = y_row[c] / row_sum;
    }
}
