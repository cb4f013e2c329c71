"""Softmax kernels in the style of the generated ones, shortened."""

SHARED_REDUCE = """
constexpr int THREADS_PER_BLOCK = 64;
constexpr unsigned WHOLE_WARP = 0xffffffffu;

struct Max {
    static __device__ float combine(float a, float b) { return fmaxf(a, b); }
    static __device__ float identity() { return -FLT_MAX; }
};
struct Sum {
    static __device__ float combine(float a, float b) { return a + b; }
    static __device__ float identity() { return 0.0f; }
};

template <typename Op>
__device__ __forceinline__ float warp_reduce(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        value = Op::combine(value, __shfl_xor_sync(WHOLE_WARP, value, offset));
    }
    return value;
}

template <typename Op>
__device__ __forceinline__ float row_reduce(float value) {
    __shared__ float warp_values[32];
    const int lane = threadIdx.x % warpSize;
    value = warp_reduce<Op>(value);
    if (lane == 0) warp_values[threadIdx.x / warpSize] = value;
    __syncthreads();
    value = lane < THREADS_PER_BLOCK / 32 ? warp_values[lane] : Op::identity();
    value = warp_reduce<Op>(value);
    __syncthreads();
    return value;
}
"""

# One block a row, three passes, exponentials in registers.
REGISTER_CACHED = SHARED_REDUCE + """
constexpr int ITEMS = 5;

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK)
k(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const size_t row_start = static_cast<size_t>(blockIdx.x) * cols;
    float values[ITEMS];
    float m = -FLT_MAX;
    for (int i = 0; i < ITEMS; ++i) {
        const int c = threadIdx.x + i * THREADS_PER_BLOCK;
        values[i] = c < cols ? x[row_start + c] : -INFINITY;
        m = fmaxf(m, values[i]);
    }
    m = row_reduce<Max>(m);
    float d = 0.0f;
    for (int i = 0; i < ITEMS; ++i) d += values[i] = expf(values[i] - m);
    d = row_reduce<Sum>(d);
    for (int i = 0; i < ITEMS; ++i) {
        const int c = threadIdx.x + i * THREADS_PER_BLOCK;
        if (c < cols) y[row_start + c] = values[i] / d;
    }
}
"""

# The same with the row in dynamic shared memory, read and written four elements at a time.
SHARED_CACHED = SHARED_REDUCE + """
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 2)
k(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    extern __shared__ __align__(16) float row_cache[];
    const float4* x4 = reinterpret_cast<const float4*>(x + static_cast<size_t>(blockIdx.x) * cols);
    float4* y4 = reinterpret_cast<float4*>(y + static_cast<size_t>(blockIdx.x) * cols);
    for (int i = threadIdx.x; i < cols / 4; i += THREADS_PER_BLOCK) {
        reinterpret_cast<float4*>(row_cache)[i] = x4[i];
    }
    __syncthreads();
    float m = -FLT_MAX;
    for (int c = threadIdx.x; c < cols; c += THREADS_PER_BLOCK) m = fmaxf(m, row_cache[c]);
    m = row_reduce<Max>(m);
    float d = 0.0f;
    for (int c = threadIdx.x; c < cols; c += THREADS_PER_BLOCK) d += expf(row_cache[c] - m);
    d = row_reduce<Sum>(d);
    for (int i = threadIdx.x; i < cols / 4; i += THREADS_PER_BLOCK) {
        const float4 v = reinterpret_cast<const float4*>(row_cache)[i];
        y4[i] = make_float4(expf(v.x - m) / d, expf(v.y - m) / d, expf(v.z - m) / d,
                            expf(v.w - m) / d);
    }
}
"""
