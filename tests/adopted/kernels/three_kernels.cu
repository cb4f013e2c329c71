#include <cuda_runtime.h>

#define THREADS 256

__device__ static void atomicMaxFloat(float* address, float value) {
    int* as_int = (int*)address;
    int old = *as_int, assumed;
    do {
        assumed = old;
        old = atomicCAS(as_int, assumed, __float_as_int(fmaxf(value, __int_as_float(assumed))));
    } while (assumed != old);
}

__global__ void init_kernel(float* row_max, float* row_sum, int rows) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows) {
        row_max[i] = -INFINITY;
        row_sum[i] = 0.0f;
    }
}

__global__ void max_kernel(const float* x, float* row_max, int rows, int cols) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (size_t)rows * cols) atomicMaxFloat(&row_max[i / cols], x[i]);
}

__global__ void sum_kernel(const float* x, const float* row_max, float* row_sum, int rows, int cols) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (size_t)rows * cols) atomicAdd(&row_sum[i / cols], expf(x[i] - row_max[i / cols]));
}

__global__ void normalize_kernel(const float* x, const float* row_max, const float* row_sum, float* y, int rows, int cols) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (size_t)rows * cols) y[i] = expf(x[i] - row_max[i / cols]) / row_sum[i / cols];
}

void softmax(const float* d_x, float* d_y, int rows, int cols) {
    float *d_max, *d_sum;
    cudaMalloc(&d_max, rows * sizeof(float));
    cudaMalloc(&d_sum, rows * sizeof(float));
    int blocks = (int)(((size_t)rows * cols + THREADS - 1) / THREADS);
    init_kernel<<<(rows + THREADS - 1) / THREADS, THREADS>>>(d_max, d_sum, rows);
    max_kernel<<<blocks, THREADS>>>(d_x, d_max, rows, cols);
    sum_kernel<<<blocks, THREADS>>>(d_x, d_max, d_sum, rows, cols);
    normalize_kernel<<<blocks, THREADS>>>(d_x, d_max, d_sum, d_y, rows, cols);
    cudaFree(d_max);
    cudaFree(d_sum);
}
