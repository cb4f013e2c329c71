#include <cuda_runtime.h>
#define FLOAT4(p) (reinterpret_cast<const float4*>(p))

__inline__ __device__ float reduce_max(float v) {
    for (int o = 16; o > 0; o /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, o));
    return v;
}
__inline__ __device__ float reduce_sum(float v) {
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffff, v, o);
    return v;
}

__global__ void softmax_vec4(const float* input, float* output, const int M, const int N) {
    const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= M) return;
    const int lane = threadIdx.x % 32;
    const float4* in4 = FLOAT4(input + (long)row * N);
    float4* out4 = reinterpret_cast<float4*>(output + (long)row * N);
    const int N4 = N / 4;
    float m = -INFINITY;
    for (int i = lane; i < N4; i += 32) {
        float4 v = in4[i];
        m = fmaxf(m, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    }
    m = reduce_max(m);
    float s = 0;
    for (int i = lane; i < N4; i += 32) {
        float4 v = in4[i];
        s += expf(v.x - m) + expf(v.y - m) + expf(v.z - m) + expf(v.w - m);
    }
    s = reduce_sum(s);
    for (int i = lane; i < N4; i += 32) {
        float4 v = in4[i];
        out4[i] = make_float4(expf(v.x - m) / s, expf(v.y - m) / s, expf(v.z - m) / s, expf(v.w - m) / s);
    }
}

int main() {
    int M = 512, N = 1024;
    float *input, *output;
    cudaMalloc((void**)&input, M * N * 4);
    cudaMalloc((void**)&output, M * N * 4);
    int threads = 128;
    int rows_per_block = threads / 32;
    softmax_vec4<<<(M + rows_per_block - 1) / rows_per_block, threads>>>(input, output, M, N);
}
