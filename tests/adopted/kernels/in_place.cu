#define TPB 128
__device__ float row_op(float* s, float v, bool is_max) {
    s[threadIdx.x] = v;
    __syncthreads();
    for (int h = TPB >> 1; h; h >>= 1) {
        if (threadIdx.x < h) s[threadIdx.x] = is_max ? fmaxf(s[threadIdx.x], s[threadIdx.x + h]) : s[threadIdx.x] + s[threadIdx.x + h];
        __syncthreads();
    }
    float r = s[0];
    __syncthreads();
    return r;
}

__global__ void softmax_inplace(float* data, size_t rows, size_t cols) {
    __shared__ float s[TPB];
    float* row = data + blockIdx.x * cols;
    float m = -INFINITY;
    for (size_t i = threadIdx.x; i < cols; i += TPB) m = fmaxf(m, row[i]);
    m = row_op(s, m, true);
    float d = 0.f;
    for (size_t i = threadIdx.x; i < cols; i += TPB) {
        row[i] = expf(row[i] - m);
        d += row[i];
    }
    d = row_op(s, d, false);
    for (size_t i = threadIdx.x; i < cols; i += TPB) row[i] /= d;
}

void softmax(float* data, size_t rows, size_t cols) { softmax_inplace<<<rows, TPB>>>(data, rows, cols); }
