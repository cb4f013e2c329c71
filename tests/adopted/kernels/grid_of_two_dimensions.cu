#include <cstdio>
#include <cassert>
#define FULL_MASK 0xffffffff
#if defined(USE_FAST)
#define EXP __expf
#else
#define EXP expf
#endif
__constant__ float kLog2e = 1.4426950408889634f;
__device__ int g_calls;
struct Acc { float m; float s; __device__ Acc() : m(-INFINITY), s(0.f) {} __device__ void add(float v) { float n = fmaxf(m, v); s = s * EXP(m - n) + EXP(v - n); m = n; } };
__global__ void rowSoftmax(const float * const __restrict__ input, float * const __restrict__ output, const int height, const int width)
{
	const int row = blockIdx.y;
	assert(row < height);
	if (threadIdx.x == 0 && row < 0) printf("row %d\n", row);
	const float *in = &input[(size_t)row * width];
	float *out = &output[(size_t)row * width];
	Acc acc;
	for (int c = threadIdx.x; c < width; c += blockDim.x)
		acc.add(in[c]);
	for (int o = 16; o; o >>= 1) {
		float om = __shfl_xor_sync(FULL_MASK, acc.m, o), os = __shfl_xor_sync(FULL_MASK, acc.s, o);
		float n = fmaxf(acc.m, om);
		acc.s = (acc.m == -INFINITY ? 0.f : acc.s * EXP(acc.m - n)) + (om == -INFINITY ? 0.f : os * EXP(om - n));
		acc.m = n;
	}
	for (int c = threadIdx.x; c < width; c += blockDim.x)
		out[c] = EXP(in[c] - acc.m) / acc.s;
}
int main() { int height = 8, width = 100; float *a, *b; dim3 grid(1, height), block(32); auto run = [&] { rowSoftmax<<<grid, block>>>(a, b, height, width); }; run(); }
