#include <cuda_runtime.h>
#include <cfloat>

__global__ void find_max(const float* x, float* maxima, int n) {
    __shared__ float s[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : -FLT_MAX;
    __syncthreads();
    for (int k = blockDim.x / 2; k > 0; k >>= 1) {
        if (threadIdx.x < k) s[threadIdx.x] = fmaxf(s[threadIdx.x], s[threadIdx.x + k]);
        __syncthreads();
    }
    if (threadIdx.x == 0) maxima[blockIdx.x] = s[0];
}

__global__ void add_exps(const float* x, const float* maxima, int blocks, float* sum, int n) {
    float m = -FLT_MAX;
    for (int b = 0; b < blocks; ++b) m = fmaxf(m, maxima[b]);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float e = i < n ? expf(x[i] - m) : 0.f;
    for (int o = 16; o > 0; o >>= 1) e += __shfl_down_sync(0xffffffff, e, o);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, e);
}

__global__ void write_out(const float* x, const float* maxima, int blocks, const float* sum, float* y, int n) {
    float m = -FLT_MAX;
    for (int b = 0; b < blocks; ++b) m = fmaxf(m, maxima[b]);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = expf(x[i] - m) / *sum;
}

void solve(const float* x, float* y, int n) {
    int threads = 256, blocks = (n + threads - 1) / threads;
    float *maxima, *sum;
    cudaMalloc(&maxima, blocks * sizeof(float));
    cudaMalloc(&sum, sizeof(float));
    cudaMemset(sum, 0, sizeof(float));
    find_max<<<blocks, threads>>>(x, maxima, n);
    add_exps<<<blocks, threads>>>(x, maxima, blocks, sum, n);
    write_out<<<blocks, threads>>>(x, maxima, blocks, sum, y, n);
}
