#include "helper_cuda.h"
#include <math.h>

__global__ void softmax_tree(const float* __restrict__ x, float* __restrict__ y, int n_rows, int n_cols) {
    extern __shared__ float sdata[];
    const int tid = threadIdx.x;
    const long long base = (long long)blockIdx.x * n_cols;

    float v = -INFINITY;
    for (int i = tid; i < n_cols; i += blockDim.x) v = fmaxf(v, x[base + i]);
    sdata[tid] = v;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) sdata[tid] = fmaxf(sdata[tid], sdata[tid + s]);
        __syncthreads();
    }
    const float row_max = sdata[0];
    __syncthreads();

    float sum = 0.f;
    for (int i = tid; i < n_cols; i += blockDim.x) sum += expf(x[base + i] - row_max);
    sdata[tid] = sum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    sum = sdata[0];
    for (int i = tid; i < n_cols; i += blockDim.x) y[base + i] = expf(x[base + i] - row_max) / sum;
}

void launch_softmax_tree(const float* x, float* y, int n_rows, int n_cols, cudaStream_t stream) {
    constexpr int kThreads = 128;
    const size_t smem = kThreads * sizeof(float);
    softmax_tree<<<n_rows, kThreads, smem, stream>>>(x, y, n_rows, n_cols);
    checkCudaErrors(cudaGetLastError());
}
