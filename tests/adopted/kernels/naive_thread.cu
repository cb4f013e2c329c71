#include <cuda_runtime.h>
#include <cstdio>
#include <vector>

#define CHECK(call)                                                             \
    do {                                                                        \
        cudaError_t err = (call);                                               \
        if (err != cudaSuccess) {                                               \
            fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(err)); \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

// One thread does a whole row.
__global__ void softmax_naive(const float* in, float* out, int M, int N) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M) return;
    const float* x = in + (size_t)row * N;
    float* y = out + (size_t)row * N;
    float m = -INFINITY, s = 0.0f;
    for (int i = 0; i < N; i++) m = fmaxf(m, x[i]);
    for (int i = 0; i < N; i++) s += expf(x[i] - m);
    for (int i = 0; i < N; i++) y[i] = expf(x[i] - m) / s;
}

int main() {
    const int M = 1024, N = 2048;
    std::vector<float> h(M * N);
    float *d_in, *d_out;
    CHECK(cudaMalloc(&d_in, M * N * sizeof(float)));
    CHECK(cudaMalloc(&d_out, M * N * sizeof(float)));
    CHECK(cudaMemcpy(d_in, h.data(), M * N * sizeof(float), cudaMemcpyHostToDevice));
    dim3 block(128);
    dim3 grid((M + block.x - 1) / block.x);
    softmax_naive<<<grid, block>>>(d_in, d_out, M, N);
    CHECK(cudaDeviceSynchronize());
    return 0;
}
