#include <cstdint>
#include <type_traits>

namespace fast {

template <typename T, int N>
struct alignas(sizeof(T) * N) Pack { T v[N]; };

// A warp has a whole row in its registers: at most kMaxCols columns.
template <typename T, int kVec, int kMaxCols, bool kLog = false>
__global__ void warp_softmax(const T* __restrict__ src, T* __restrict__ dst, const int64_t rows, const int64_t cols) {
    constexpr int kPacks = kMaxCols / (32 * kVec);
    const int64_t row = blockIdx.x * static_cast<int64_t>(blockDim.y) + threadIdx.y;
    if (row >= rows) return;
    const Pack<T, kVec>* in = reinterpret_cast<const Pack<T, kVec>*>(src + row * cols);
    Pack<T, kVec>* out = reinterpret_cast<Pack<T, kVec>*>(dst + row * cols);
    const int packs = cols / kVec;
    Pack<T, kVec> reg[kPacks];
    float m = -INFINITY, s = 0.f;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
        const int at = p * 32 + threadIdx.x;
        if (at < packs) {
            reg[p] = in[at];
#pragma unroll
            for (int k = 0; k < kVec; ++k) m = fmaxf(m, reg[p].v[k]);
        }
    }
    for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, o));
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
        if (p * 32 + threadIdx.x < packs) {
#pragma unroll
            for (int k = 0; k < kVec; ++k) {
                reg[p].v[k] = __expf(reg[p].v[k] - m);
                s += reg[p].v[k];
            }
        }
    }
    for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(0xffffffff, s, o);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
        const int at = p * 32 + threadIdx.x;
        if (at < packs) {
#pragma unroll
            for (int k = 0; k < kVec; ++k) reg[p].v[k] /= s;
            out[at] = reg[p];
        }
    }
}

template <typename T>
void dispatch(const T* src, T* dst, int64_t rows, int64_t cols) {
    dim3 block(32, 4);
    const int64_t blocks = (rows + 3) / 4;
    if (cols <= 1024 && cols % 2 == 0) warp_softmax<T, 2, 1024><<<blocks, block>>>(src, dst, rows, cols);
}

template void dispatch<float>(const float*, float*, int64_t, int64_t);

}  // namespace fast
