// Arguments in another order, of other types, with a number of its own.
extern "C" __global__ void scaled_softmax(unsigned int width, float* dst, size_t height, float scale, const float* src, bool negate) {
    for (size_t r = blockIdx.x; r < height; r += gridDim.x) {
        const float* in = src + r * width;
        __shared__ float shared_max, shared_sum;
        if (threadIdx.x == 0) {
            float m = -INFINITY, s = 0.f;
            for (unsigned c = 0; c < width; ++c) m = fmaxf(m, (negate ? -1.f : scale) * in[c]);
            for (unsigned c = 0; c < width; ++c) s += expf(scale * in[c] - m);
            shared_max = m;
            shared_sum = s;
        }
        __syncthreads();
        for (unsigned c = threadIdx.x; c < width; c += blockDim.x) dst[r * width + c] = expf(scale * in[c] - shared_max) / shared_sum;
        __syncthreads();
    }
}

void go(const float* src, float* dst, size_t height, unsigned width) {
    int blocks = std::min<int>(height, 64);
    scaled_softmax<<<blocks, 32>>>(width, dst, height, 1.0f, src, false);
}
