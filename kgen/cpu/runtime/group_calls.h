// What kernels ask of the runtime beyond their own block: clusters, mbarriers, asynchronous copies
// and polling. Apart from runtime_calls.h, since only the headers in include/ need it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "site.h"

namespace kgen_cpu {

unsigned cluster_rank();
unsigned cluster_size();
// The address in block `rank` of the cluster that corresponds to `address` in the calling one.
void* map_shared(const volatile void* address, unsigned rank, Site site);

// Arriving releases what the thread did, unless it is relaxed; waiting acquires.
void cluster_arrive(bool is_relaxed, Site site);
// What stands before it, a relaxed arrival releases too.
void fence_mbarrier_init();
void cluster_wait(Site site);

void mbarrier_init(uint64_t* barrier, uint32_t count, Site site);
// Where an mbarrier may lie that a thread arrives at: in its own block, or anywhere in the cluster.
enum class Reach { block, cluster };
void mbarrier_arrive(uint64_t* barrier, uint32_t arrivals, uint32_t expected_bytes, Reach reach,
                     Site site);
// Returns when the phase of that parity is complete.
void mbarrier_wait(uint64_t* barrier, uint32_t parity, Site site);

// Stores `bytes` of `value` in a block of the cluster and tells the mbarrier there.
void store_async(void* to, const void* value, uint32_t bytes, uint64_t* barrier, Site site);

// A copy of 4, 8 or 16 bytes to shared memory, seen when the thread waits for its batch.
void pipeline_copy(void* to, const void* from, size_t bytes, Site site);
void pipeline_commit();
// Waits for all of the thread's batches but the last `pending` ones.
void pipeline_wait(size_t pending, Site site);

// Bulk copies: from global memory, telling an mbarrier, and to it, in groups of a thread.
void bulk_load(void* to, const void* from, uint32_t bytes, uint64_t* barrier, Site site);
void bulk_store(void* to, const void* from, uint32_t bytes, Site site);
void bulk_commit();
// Waits until all of the thread's groups but the last `pending` ones have read their source and,
// unless `is_read_only`, have written.
void bulk_wait(size_t pending, bool is_read_only, Site site);
void proxy_fence();

// For observed runs: an atomic access of 4 or 8 bytes, with its memory order (__ATOMIC_RELAXED...).
struct AtomicAccess {
    bool reads, writes;
    int order;
};
void atomic_accessed(const volatile void* address, unsigned bytes, AtomicAccess access, Site site);

// Called after an atomic load. True when the thread found this value there before: others have then
// run, and it should look again.
bool polls_again(const volatile void* address, uint64_t value, Site site);

}  // namespace kgen_cpu
