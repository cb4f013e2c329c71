#include <cuda_runtime.h>
#include <float.h>

#define WARP_SIZE 32
#define ROWS_PER_BLOCK 4
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
    for (int o = WARP_SIZE / 2; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, o, WARP_SIZE));
    return v;
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int o = WARP_SIZE / 2; o > 0; o >>= 1) v += __shfl_xor_sync(0xffff, v, o, WARP_SIZE);
    return v;
}

__global__ void softmax_warp(const float* inp, float* out, int N, int C) {
    // One warp a row, threadIdx.y says which.
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= N) return;
    const float* x = inp + size_t(row) * C;
    float* y = out + size_t(row) * C;
    float m = -FLT_MAX;
    for (int i = threadIdx.x; i < C; i += WARP_SIZE) m = fmaxf(m, x[i]);
    m = warp_max(m);
    float s = 0.0f;
    for (int i = threadIdx.x; i < C; i += WARP_SIZE) {
        float e = __expf(x[i] - m);
        y[i] = e;
        s += e;
    }
    s = warp_sum(s);
    float inv = 1.0f / s;
    for (int i = threadIdx.x; i < C; i += WARP_SIZE) y[i] *= inv;
}

void softmax_forward(const float* inp, float* out, int N, int C) {
    dim3 block(WARP_SIZE, ROWS_PER_BLOCK);
    softmax_warp<<<CEIL_DIV(N, ROWS_PER_BLOCK), block>>>(inp, out, N, C);
}
