// Cooperative groups within a block: the block itself, and tiles of its warps.
#pragma once

#include "../../cuda_sync.h"

namespace cooperative_groups {

inline unsigned long long linear_thread() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

class thread_block {
  public:
    static void sync(kgen_cpu::Site site = kgen_cpu::here()) { kgen_cpu::barrier(site); }
    static unsigned thread_rank() { return static_cast<unsigned>(linear_thread()); }
    static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned num_threads() { return size(); }
    static dim3 group_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
    static dim3 thread_index() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
    static dim3 dim_threads() { return blockDim; }
    static dim3 group_dim() { return blockDim; }
};

inline thread_block this_thread_block() { return {}; }

// SIZE neighbouring lanes of a warp; all of them take part in what the tile does.
template <unsigned SIZE, class Parent = void>
class thread_block_tile {
    static_assert(SIZE <= 32 && (SIZE & (SIZE - 1)) == 0, "the CPU executor has tiles of a warp");
    using Site = kgen_cpu::Site;

  public:
    thread_block_tile() = default;
    template <class Other>
    thread_block_tile(const thread_block_tile<SIZE, Other>&) {}

    static unsigned thread_rank() { return linear_thread() % SIZE; }
    static constexpr unsigned size() { return SIZE; }
    static constexpr unsigned num_threads() { return SIZE; }
    static unsigned meta_group_rank() { return linear_thread() / SIZE; }
    static unsigned meta_group_size() { return (thread_block::size() + SIZE - 1) / SIZE; }

    static void sync(Site site = kgen_cpu::here()) { __syncwarp(mask(), site); }
    template <class T>
    static T shfl(T value, int lane, Site site = kgen_cpu::here()) {
        return __shfl_sync(mask(), value, lane, SIZE, site);
    }
    template <class T>
    static T shfl_up(T value, unsigned delta, Site site = kgen_cpu::here()) {
        return __shfl_up_sync(mask(), value, delta, SIZE, site);
    }
    template <class T>
    static T shfl_down(T value, unsigned delta, Site site = kgen_cpu::here()) {
        return __shfl_down_sync(mask(), value, delta, SIZE, site);
    }
    template <class T>
    static T shfl_xor(T value, unsigned lanes, Site site = kgen_cpu::here()) {
        return __shfl_xor_sync(mask(), value, lanes, SIZE, site);
    }
    static int any(int predicate, Site site = kgen_cpu::here()) {
        return __any_sync(mask(), predicate, site);
    }
    static int all(int predicate, Site site = kgen_cpu::here()) {
        return __all_sync(mask(), predicate, site);
    }
    static unsigned ballot(int predicate, Site site = kgen_cpu::here()) {
        return (__ballot_sync(mask(), predicate, site) & mask()) >> first();
    }

  private:
    static unsigned first() { return linear_thread() % 32 / SIZE * SIZE; }
    static unsigned mask() { return (SIZE == 32 ? ~0u : (1u << SIZE % 32) - 1) << first(); }
};

template <unsigned SIZE, class Parent>
thread_block_tile<SIZE, Parent> tiled_partition(const Parent&) {
    return {};
}

template <class Group>
void sync(const Group& group, kgen_cpu::Site site = kgen_cpu::here()) {
    group.sync(site);
}

}  // namespace cooperative_groups
