#include <torch/extension.h>
#include <cuda.h>
#include <cuda_runtime.h>

namespace {

template <typename Op>
__device__ float block_reduce(float value, Op op, float identity) {
    __shared__ float partial[32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int offset = 16; offset; offset >>= 1)
        value = op(value, __shfl_down_sync(0xffffffffu, value, offset));
    __syncthreads();
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    value = threadIdx.x < (blockDim.x >> 5) ? partial[lane] : identity;
    if (warp == 0) {
        for (int offset = 16; offset; offset >>= 1)
            value = op(value, __shfl_down_sync(0xffffffffu, value, offset));
        if (lane == 0) partial[0] = value;
    }
    __syncthreads();
    return partial[0];
}

struct Max { __device__ float operator()(float a, float b) const { return fmaxf(a, b); } };
struct Sum { __device__ float operator()(float a, float b) const { return a + b; } };

template <typename scalar_t>
__global__ void softmax_forward_kernel(const scalar_t* __restrict__ input, scalar_t* __restrict__ output, const int64_t dim) {
    const scalar_t* row_in = input + blockIdx.x * dim;
    scalar_t* row_out = output + blockIdx.x * dim;
    float m = -INFINITY;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) m = fmaxf(m, row_in[i]);
    m = block_reduce(m, Max(), -INFINITY);
    float s = 0;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) s += expf(row_in[i] - m);
    s = block_reduce(s, Sum(), 0.f);
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) row_out[i] = expf(row_in[i] - m) / s;
}

}  // namespace

torch::Tensor softmax_cuda(torch::Tensor input) {
    const auto rows = input.size(0), dim = input.size(1);
    auto output = torch::empty_like(input);
    const int threads = 256;
    AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "softmax", [&] {
        softmax_forward_kernel<scalar_t><<<rows, threads>>>(input.data_ptr<scalar_t>(), output.data_ptr<scalar_t>(), dim);
    });
    return output;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("softmax", &softmax_cuda); }
