// The block does not wait until all of its warps have stored their sums.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void softmax_block_cg(const float* __restrict__ x, float* __restrict__ y, int cols) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    __shared__ float maxima[32], sums[32];
    const float* in = x + (size_t)block.group_index().x * cols;
    float* out = y + (size_t)block.group_index().x * cols;
    float m = -INFINITY;
    for (int i = block.thread_rank(); i < cols; i += block.size()) m = max(m, in[i]);
    m = cg::reduce(tile, m, cg::greater<float>());
    if (tile.thread_rank() == 0) maxima[tile.meta_group_rank()] = m;
    block.sync();
    for (unsigned w = 0; w < tile.meta_group_size(); ++w) m = max(m, maxima[w]);
    float s = 0;
    for (int i = block.thread_rank(); i < cols; i += block.size()) s += __expf(in[i] - m);
    s = cg::reduce(tile, s, cg::plus<float>());
    if (tile.thread_rank() == 0) sums[tile.meta_group_rank()] = s;
    s = 0;
    for (unsigned w = 0; w < tile.meta_group_size(); ++w) s += sums[w];
    for (int i = block.thread_rank(); i < cols; i += block.size()) out[i] = __expf(in[i] - m) / s;
}

void go(const float* x, float* y, int rows, int cols) { softmax_block_cg<<<rows, 256>>>(x, y, cols); }
