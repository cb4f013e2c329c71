#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;

__global__ void softmax_cg(const float* inp, float* out, int N, int C) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    int idx = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
    if (idx >= N) return;
    const float* x = inp + (size_t)idx * C;
    float maxval = -INFINITY, sumval = 0.0f;
    for (int i = warp.thread_rank(); i < C; i += warp.size()) maxval = fmaxf(maxval, x[i]);
    maxval = cg::reduce(warp, maxval, cg::greater<float>{});
    for (int i = warp.thread_rank(); i < C; i += warp.size()) sumval += expf(x[i] - maxval);
    sumval = cg::reduce(warp, sumval, cg::plus<float>{});
    for (int i = warp.thread_rank(); i < C; i += warp.size())
        __stcs(out + (size_t)idx * C + i, expf(x[i] - maxval) / sumval);
}

void softmax_forward(float* out, const float* inp, int N, int C, int block_size) {
    int grid_size = ceil((float)N * 32 / block_size);
    softmax_cg<<<grid_size, block_size>>>(inp, out, N, C);
}

int main() {
    float *d_out = nullptr, *d_inp = nullptr;
    softmax_forward(d_out, d_inp, 8 * 1024, 50257, 128);
}
