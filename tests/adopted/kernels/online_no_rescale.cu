// The sum is not rescaled when the maximum changes.
__global__ void softmax_online(const float* in, float* out, int rows, int cols) {
    size_t row = blockIdx.x;
    int lane = threadIdx.x;
    const float* r = &in[row * cols];
    float m = -1e30f, d = 0.f;
    for (int c = lane; c < cols; c += 32) {
        float m_new = fmaxf(m, r[c]);
        d = d + expf(r[c] - m_new);
        m = m_new;
    }
    for (int mask = 16; mask > 0; mask >>= 1) {
        float om = __shfl_xor_sync(0xffffffff, m, mask);
        float od = __shfl_xor_sync(0xffffffff, d, mask);
        float nm = fmaxf(m, om);
        d = d * expf(m - nm) + od * expf(om - nm);
        m = nm;
    }
    for (int c = lane; c < cols; c += 32) out[row * cols + c] = expf(r[c] - m) / d;
}

void go(const float* in, float* out, int rows, int cols) {
    softmax_online<<<dim3(rows), dim3(32)>>>(in, out, rows, cols);
}
