#include <cuda_runtime.h>
// Everything is static: no launch in this file.
namespace kernels {
namespace detail {
static __device__ inline void push(float& m, float& d, float x) {
    const float larger = max(m, x);
    d = d * exp2f((m - larger) * 1.44269504f) + exp2f((x - larger) * 1.44269504f);
    m = larger;
}
}  // namespace detail

static __global__ void softmax_online2(float const* const src, float* const dst, unsigned const num_rows, unsigned const num_cols) {
    const unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32u;
    const unsigned lane = threadIdx.x % 32u;
    if (warp >= num_rows) return;
    float const* const a = src + static_cast<size_t>(warp) * num_cols;
    float m = -3.402823466e+38f, d = 0.f;
    for (unsigned i = lane; i < num_cols; i += 32u) detail::push(m, d, __ldg(a + i));
    for (int k = 16; k != 0; k /= 2) {
        const float om = __shfl_xor_sync(~0u, m, k), od = __shfl_xor_sync(~0u, d, k);
        const float larger = max(m, om);
        d = d * exp2f((m - larger) * 1.44269504f) + od * exp2f((om - larger) * 1.44269504f);
        m = larger;
    }
    for (unsigned i = lane; i < num_cols; i += 32u)
        __stcs(dst + static_cast<size_t>(warp) * num_cols + i, exp2f((a[i] - m) * 1.44269504f) / d);
}
}  // namespace kernels
