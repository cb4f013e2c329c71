// What kernels use of CUDA's cooperative groups: the cluster, the block and tiles of its warps.
#pragma once

#include "../group_calls.h"
#include "cooperative_groups/block_tiles.h"

namespace cooperative_groups {

class cluster_group {
  public:
    struct arrival_token {};

    static unsigned block_rank() { return kgen_cpu::cluster_rank(); }
    static unsigned num_blocks() { return kgen_cpu::cluster_size(); }
    static void sync(kgen_cpu::Site site = kgen_cpu::here()) {
        kgen_cpu::cluster_arrive(false, site);
        kgen_cpu::cluster_wait(site);
    }
    static arrival_token barrier_arrive(kgen_cpu::Site site = kgen_cpu::here()) {
        kgen_cpu::cluster_arrive(false, site);
        return {};
    }
    static void barrier_wait(kgen_cpu::Site site = kgen_cpu::here()) {
        kgen_cpu::cluster_wait(site);
    }
    static void barrier_wait(arrival_token&&, kgen_cpu::Site site = kgen_cpu::here()) {
        kgen_cpu::cluster_wait(site);
    }
    template <class T>
    static T* map_shared_rank(T* address, int rank, kgen_cpu::Site site = kgen_cpu::here()) {
        return static_cast<T*>(kgen_cpu::map_shared(address, static_cast<unsigned>(rank), site));
    }
};

inline cluster_group this_cluster() { return {}; }

}  // namespace cooperative_groups
