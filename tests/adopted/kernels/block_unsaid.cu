// No launch: it works with a block of one warp only.
__global__ void softmax(const float* x, float* y, int cols) {
    float m = -INFINITY, s = 0.f;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) m = fmaxf(m, x[(size_t)blockIdx.x * cols + i]);
    for (int o = 16; o; o /= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, o));
    for (int i = threadIdx.x; i < cols; i += blockDim.x) s += expf(x[(size_t)blockIdx.x * cols + i] - m);
    for (int o = 16; o; o /= 2) s += __shfl_xor_sync(0xffffffff, s, o);
    for (int i = threadIdx.x; i < cols; i += blockDim.x) y[(size_t)blockIdx.x * cols + i] = expf(x[(size_t)blockIdx.x * cols + i] - m) / s;
}
