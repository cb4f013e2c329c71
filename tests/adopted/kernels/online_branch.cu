#include <cuda_runtime.h>
#include <cfloat>

struct __align__(8) MD {
    float m;
    float d;
};

__device__ __forceinline__ MD combine(MD a, MD b) {
    bool a_bigger = a.m > b.m;
    MD big = a_bigger ? a : b, small = a_bigger ? b : a;
    MD r;
    r.m = big.m;
    r.d = big.d + small.d * __expf(small.m - big.m);
    return r;
}

template <int THREADS>
__launch_bounds__(THREADS) __global__
void online_softmax(const float* __restrict x, float* __restrict y, int V) {
    int row = blockIdx.x;
    x += row * (size_t)V;
    y += row * (size_t)V;
    MD partial{-FLT_MAX, 0.0f};
    for (int i = threadIdx.x; i < V; i += THREADS) {
        float v = x[i];
        if (v > partial.m) {
            partial.d *= __expf(partial.m - v);
            partial.m = v;
        }
        partial.d += __expf(v - partial.m);
    }
    __shared__ MD all[THREADS];
    all[threadIdx.x] = partial;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) all[threadIdx.x] = combine(all[threadIdx.x], all[threadIdx.x + half]);
        __syncthreads();
    }
    MD total = all[0];
    float inverse = __fdividef(1.0f, total.d);
    for (int i = threadIdx.x; i < V; i += THREADS) y[i] = __expf(x[i] - total.m) * inverse;
}

int main(int argc, char* argv[]) {
    int batch_size = 4000, V = 32000;
    float *x, *y;
    cudaMalloc(&x, (size_t)batch_size * V * sizeof(float));
    cudaMalloc(&y, (size_t)batch_size * V * sizeof(float));
    online_softmax<256><<<batch_size, 256>>>(x, y, V);
    cudaDeviceSynchronize();
}
