#include <cuda_runtime.h>

__global__ void softmax1d(const float* x, float* y, int n) {
    __shared__ float cache[1024];
    float v = -INFINITY;
    for (int i = threadIdx.x; i < n; i += blockDim.x) v = fmaxf(v, x[i]);
    cache[threadIdx.x] = v;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) cache[threadIdx.x] = fmaxf(cache[threadIdx.x], cache[threadIdx.x + s]);
        __syncthreads();
    }
    float top = cache[0];
    __syncthreads();
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(x[i] - top);
    cache[threadIdx.x] = sum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) cache[threadIdx.x] += cache[threadIdx.x + s];
        __syncthreads();
    }
    sum = cache[0];
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = expf(x[i] - top) / sum;
}

extern "C" void solve(const float* input, float* output, int N) {
    softmax1d<<<1, 512>>>(input, output, N);
    cudaDeviceSynchronize();
}
