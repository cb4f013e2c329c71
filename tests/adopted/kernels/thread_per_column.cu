// A block has as many threads as a row has columns.
__global__ void softmax_small(const float* a, float* b, int M, int N) {
    extern __shared__ float row[];
    int i = blockIdx.x, j = threadIdx.x;
    row[j] = a[(size_t)i * N + j];
    __syncthreads();
    float m = row[0];
    for (int k = 1; k < N; k++) m = fmaxf(m, row[k]);
    float s = 0;
    for (int k = 0; k < N; k++) s += expf(row[k] - m);
    b[(size_t)i * N + j] = expf(row[j] - m) / s;
}

void softmax(const float* a, float* b, int M, int N) { softmax_small<<<M, N, N * sizeof(float)>>>(a, b, M, N); }
