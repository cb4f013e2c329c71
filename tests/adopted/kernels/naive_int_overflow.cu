// The offset of a row is computed in int.
__global__ void softmax(float* input, float* output, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) {
        float biggest = input[r * cols];
        for (int c = 1; c < cols; ++c) biggest = max(biggest, input[r * cols + c]);
        float total = 0;
        for (int c = 0; c < cols; ++c) {
            output[r * cols + c] = expf(input[r * cols + c] - biggest);
            total += output[r * cols + c];
        }
        for (int c = 0; c < cols; ++c) output[r * cols + c] /= total;
    }
}

void run(float* a, float* b, int rows, int cols) {
    int threads = 256;
    int blocks = (rows + threads - 1) / threads;
    softmax<<<blocks, threads>>>(a, b, rows, cols);
}
