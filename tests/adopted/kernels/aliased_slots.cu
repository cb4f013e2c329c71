// All warps store their sums in the same two places.
__global__ void softmax_k(const float* x, float* y, int cols) {
    __shared__ float top[8], sum[8];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float* r = x + (size_t)blockIdx.x * cols;
    float m = -INFINITY;
    for (int i = threadIdx.x; i < cols; i += 256) m = fmaxf(m, r[i]);
    for (int o = 16; o; o /= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, o));
    if (lane == 0) top[warp] = m;
    __syncthreads();
    for (int w = 0; w < 8; w++) m = fmaxf(m, top[w]);
    float d = 0;
    for (int i = threadIdx.x; i < cols; i += 256) d += expf(r[i] - m);
    for (int o = 16; o; o /= 2) d += __shfl_xor_sync(0xffffffff, d, o);
    if (threadIdx.x < 8) sum[threadIdx.x] = 0;
    __syncthreads();
    if (lane == 0) sum[warp / 4] += d;
    __syncthreads();
    d = 0;
    for (int w = 0; w < 8; w++) d += sum[w];
    for (int i = threadIdx.x; i < cols; i += 256) y[(size_t)blockIdx.x * cols + i] = expf(r[i] - m) / d;
}

void go(const float* x, float* y, int rows, int cols) { softmax_k<<<rows, 256>>>(x, y, cols); }
