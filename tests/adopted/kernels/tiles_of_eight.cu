#include <cooperative_groups.h>
using namespace cooperative_groups;
namespace cg = cooperative_groups;
constexpr unsigned TILE = 8;
template <typename Group> __device__ float tile_max(Group g, float v) { for (int i = g.size() / 2; i > 0; i /= 2) v = fmaxf(v, g.shfl_down(v, i)); return g.shfl(v, 0); }
template <typename Group> __device__ float tile_sum(Group g, float v) { for (int i = g.size() / 2; i > 0; i /= 2) v += g.shfl_down(v, i); return g.shfl(v, 0); }
__global__ void __launch_bounds__(256) softmax_tile(const float* x, float* y, const unsigned rows, const unsigned cols) {
    auto tile = cg::tiled_partition<TILE>(cg::this_thread_block());
    const unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / TILE;
    if (row >= rows) return;
    const float* in = x + (size_t)row * cols;
    float m = -INFINITY, s = 0;
    for (unsigned c = tile.thread_rank(); c < cols; c += TILE) m = fmaxf(m, in[c]);
    m = tile_max(tile, m);
    for (unsigned c = tile.thread_rank(); c < cols; c += TILE) s += __expf(in[c] - m);
    s = tile_sum(tile, s);
    for (unsigned c = tile.thread_rank(); c < cols; c += TILE) y[(size_t)row * cols + c] = __expf(in[c] - m) / s;
}
#define LAUNCH(k, g, b, ...) k<<<g, b>>>(__VA_ARGS__)
void f(const float* x, float* y, unsigned rows, unsigned cols) { LAUNCH(softmax_tile, (rows * TILE + 255) / 256, 256, x, y, rows, cols); }
