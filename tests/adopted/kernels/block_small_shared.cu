// Eight warps write their sums to an array of four.
const int BLOCK_SIZE = 256;

__device__ float warpSum(float v) {
    for (int i = 16; i >= 1; i /= 2) v += __shfl_xor_sync(0xffffffff, v, i);
    return v;
}
__device__ float warpMax(float v) {
    for (int i = 16; i >= 1; i /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, i));
    return v;
}

__global__ void softmax_block(const float* x, float* y, int N) {
    __shared__ float maxima[8];
    __shared__ float sums[4];
    int wid = threadIdx.x / 32, lane = threadIdx.x % 32;
    x += (size_t)blockIdx.x * N;
    y += (size_t)blockIdx.x * N;
    float m = -INFINITY;
    for (int i = threadIdx.x; i < N; i += BLOCK_SIZE) m = fmaxf(m, x[i]);
    m = warpMax(m);
    if (lane == 0) maxima[wid] = m;
    __syncthreads();
    for (int i = 0; i < BLOCK_SIZE / 32; i++) m = fmaxf(m, maxima[i]);
    float s = 0;
    for (int i = threadIdx.x; i < N; i += BLOCK_SIZE) s += expf(x[i] - m);
    s = warpSum(s);
    if (lane == 0) sums[wid] = s;
    __syncthreads();
    s = 0;
    for (int i = 0; i < BLOCK_SIZE / 32; i++) s += sums[i];
    for (int i = threadIdx.x; i < N; i += BLOCK_SIZE) y[i] = expf(x[i] - m) / s;
}

void softmax(const float* x, float* y, int M, int N) { softmax_block<<<M, BLOCK_SIZE>>>(x, y, N); }
