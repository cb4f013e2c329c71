// The yardstick of a benchmark: the fewest bytes that a softmax can move, moved and nothing else.
// Two forms, since neither is the faster one at every size. An element of the input is an IN, one
// of the output an OUT, which CONVERTED makes of it; VEC_SIZE of the wider ones have 16 bytes.

struct alignas(VEC_SIZE * sizeof(IN)) InVec {
    IN at[VEC_SIZE];
};
struct alignas(VEC_SIZE * sizeof(OUT)) OutVec {
    OUT at[VEC_SIZE];
};

__device__ __forceinline__ OutVec converted(const InVec& from) {
    OutVec to;
#pragma unroll
    for (int k = 0; k < VEC_SIZE; ++k) to.at[k] = CONVERTED(from.at[k]);
    return to;
}

__device__ __forceinline__ void copy_tail(const IN* x, OUT* y, long long begin, long long end) {
    if (blockIdx.x == gridDim.x - 1) {
        for (long long i = begin + threadIdx.x; i < end; i += blockDim.x) y[i] = CONVERTED(x[i]);
    }
}

// One vector a thread.
extern "C" __global__ void copy_one(const IN* __restrict__ x, OUT* __restrict__ y,
    int rows, int cols) {
    const long long count = static_cast<long long>(rows) * cols;
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count / VEC_SIZE) {
        reinterpret_cast<OutVec*>(y)[i] = converted(reinterpret_cast<const InVec*>(x)[i]);
    }
    copy_tail(x, y, count / VEC_SIZE * VEC_SIZE, count);
}

// Four of them in flight at a time.
extern "C" __global__ void copy_four(const IN* __restrict__ x, OUT* __restrict__ y,
    int rows, int cols) {
    const long long count = static_cast<long long>(rows) * cols;
    const long long first = static_cast<long long>(blockIdx.x) * blockDim.x * 4 + threadIdx.x;
    InVec part[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const long long i = first + k * static_cast<long long>(blockDim.x);
        if (i < count / VEC_SIZE) part[k] = reinterpret_cast<const InVec*>(x)[i];
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const long long i = first + k * static_cast<long long>(blockDim.x);
        if (i < count / VEC_SIZE) reinterpret_cast<OutVec*>(y)[i] = converted(part[k]);
    }
    copy_tail(x, y, count / VEC_SIZE * VEC_SIZE, count);
}
