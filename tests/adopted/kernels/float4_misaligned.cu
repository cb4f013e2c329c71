// It has a tail, but the vectors of every row start where the row does.
template <int BLOCK>
__global__ void softmax_f4(float* __restrict__ y, const float* __restrict__ x, int cols) {
    __shared__ float buf[BLOCK];
    const float* xr = x + (size_t)blockIdx.x * cols;
    float* yr = y + (size_t)blockIdx.x * cols;
    int tid = threadIdx.x, quads = cols / 4, rest = cols % 4;
    float m = -INFINITY;
    for (int q = tid; q < quads; q += BLOCK) {
        float4 v = *reinterpret_cast<const float4*>(xr + 4 * q);
        m = fmaxf(fmaxf(fmaxf(m, v.x), fmaxf(v.y, v.z)), v.w);
    }
    if (tid < rest) m = fmaxf(m, xr[4 * quads + tid]);
    buf[tid] = m;
    __syncthreads();
    for (int h = BLOCK / 2; h > 0; h >>= 1) {
        if (tid < h) buf[tid] = fmaxf(buf[tid], buf[tid + h]);
        __syncthreads();
    }
    m = buf[0];
    __syncthreads();
    float s = 0.f;
    for (int i = tid; i < cols; i += BLOCK) s += expf(xr[i] - m);
    buf[tid] = s;
    __syncthreads();
    for (int h = BLOCK / 2; h > 0; h >>= 1) {
        if (tid < h) buf[tid] += buf[tid + h];
        __syncthreads();
    }
    for (int i = tid; i < cols; i += BLOCK) yr[i] = expf(xr[i] - m) / buf[0];
}

void launch(const float* x, float* y, int rows, int cols) {
    softmax_f4<128><<<rows, 128>>>(y, x, cols);
}
