#include <cuda_runtime.h>
#include <chrono>

__global__ void log_softmax_kernel(const float* logits, float* out, int B, int V) {
    int lane = threadIdx.x & 31;
    int b = blockIdx.x;
    if (b >= B) return;
    float m = -INFINITY;
    for (int v = lane; v < V; v += 32) m = fmaxf(m, logits[(size_t)b * V + v]);
    for (int o = 16; o > 0; o >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, o));
    float s = 0;
    for (int v = lane; v < V; v += 32) s += expf(logits[(size_t)b * V + v] - m);
    for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffff, s, o);
    float log_sum = logf(s);
    for (int v = lane; v < V; v += 32) out[(size_t)b * V + v] = logits[(size_t)b * V + v] - m - log_sum;
}

struct Timer {
    cudaEvent_t start, stop;
    Timer() { cudaEventCreate(&start); cudaEventCreate(&stop); }
    float ms() { float t; cudaEventElapsedTime(&t, start, stop); return t; }
};

int main() {
    const int B = 64, V = 1000;
    float *in, *out;
    cudaMalloc(&in, B * V * sizeof(float));
    cudaMalloc(&out, B * V * sizeof(float));
    Timer timer;
    for (int warm = 0; warm < 10; ++warm) log_softmax_kernel<<<B, 32>>>(in, out, B, V);
    cudaEventRecord(timer.start);
    for (int i = 0; i < 100; ++i) log_softmax_kernel<<<B, 32>>>(in, out, B, V);
    cudaEventRecord(timer.stop);
    auto now = std::chrono::steady_clock::now();
    return timer.ms() > 0 ? 0 : 1;
}
