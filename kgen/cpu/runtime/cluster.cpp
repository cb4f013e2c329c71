// Clusters: addresses in other blocks' shared memory, and the barrier of all their threads.
#include "group.h"
#include "group_calls.h"
#include "observe.h"

namespace kgen_cpu {

int Group::owner(const volatile void* address, int rank) const {
    const int first = first_of_cluster(rank);
    for (int other = first; other < first + cluster_size(); ++other) {
        if (members_[other]->shared->holds(address)) return other;
    }
    return -1;
}

void Group::check_cluster_barrier(int rank) {
    ClusterBarrier& barrier = barrier_of(rank);
    if (barrier.arrived < barrier.alive || barrier.alive == 0) return;
    barrier.arrived = 0;
    ++barrier.phase;
    const int first = first_of_cluster(rank);
    observing::cluster_met();
    for (int other = first; other < first + cluster_size(); ++other)
        block(other).end_cluster_wait();
}

void* Block::map_shared(const volatile void* address, unsigned rank, Site site) {
    if (rank >= launch_->cluster_size) {
        fault(site, current_, "map_shared_rank names block %u of a cluster of %u", rank,
              launch_->cluster_size);
    }
    if (group_.owner(address, rank_) != rank_) {
        fault(site, current_,
              "map_shared_rank is given an address outside the block's own shared "
              "memory");
    }
    const int target = group_.first_of_cluster(rank_) + static_cast<int>(rank);
    require_present(target, "maps the shared memory of", site);
    return group_.block(target).shared_->image() + shared_->offset(address);
}

void Block::require_present(int rank, const char* action, Site site) {
    if (!group_.has_returned(rank)) return;
    fault(site, current_,
          "%s block %u, which has returned: a block must stay until the others are "
          "done with its shared memory",
          action, group_.block(rank).index_);
}

void Block::cluster_arrive(bool is_relaxed, Site site) {
    unsigned& arrival = arrivals_[current_];
    if (arrival) fault(site, current_, "arrives at the cluster's barrier twice without waiting");
    ClusterBarrier& barrier = group_.barrier_of(rank_);
    arrival = barrier.phase;
    ++barrier.arrived;
    observing::cluster_arrived(is_relaxed);
    group_.check_cluster_barrier(rank_);
}

void Block::cluster_wait(Site site) {
    unsigned& arrival = arrivals_[current_];
    if (!arrival) fault(site, current_, "waits at the cluster's barrier without having arrived");
    if (arrival == group_.barrier_of(rank_).phase) {
        cluster_waiters_.push_back({current_, site});
        ready_.remove(current_);
        run_next();
    }
    arrival = 0;
    observing::cluster_waited();
}

void Block::end_cluster_wait() {
    for (const Waiter& waiter : cluster_waiters_) wake(waiter.thread);
    cluster_waiters_.clear();
}

// The running thread returns: the barrier waits for it no more.
void Block::leave_cluster() {
    ClusterBarrier& barrier = group_.barrier_of(rank_);
    if (arrivals_[current_] == barrier.phase) --barrier.arrived;
    --barrier.alive;
    group_.check_cluster_barrier(rank_);
}

bool Block::polls_again(const volatile void* address, uint64_t value, Site site) {
    const auto [found, is_new] = polled_.try_emplace({address, current_}, value);
    if (is_new || found->second != value) {
        found->second = value;
        group_.progressed();
        return false;
    }
    pollers_.push_back({current_, address, value, site});
    ready_.remove(current_);
    run_next();
    return true;
}

// What the running thread waits for may take until no other thread can go on.
void Block::let_others_run() {
    pollers_.push_back({current_, nullptr, 0, {}});
    ready_.remove(current_);
    run_next();
    group_.progressed();
}

void Block::poll_again() {
    for (const Poller& poller : pollers_) wake(poller.thread);
    pollers_.clear();
}

unsigned cluster_rank() { return Block::current()->cluster_rank(); }
unsigned cluster_size() { return Block::current()->launch().cluster_size; }
void* map_shared(const volatile void* address, unsigned rank, Site site) {
    return Block::current()->map_shared(address, rank, site);
}
void fence_mbarrier_init() { observing::mbarrier_init_fenced(); }

void cluster_arrive(bool is_relaxed, Site site) {
    Block::current()->cluster_arrive(is_relaxed, site);
}
void cluster_wait(Site site) { Block::current()->cluster_wait(site); }
bool polls_again(const volatile void* address, uint64_t value, Site site) {
    return Block::current()->polls_again(address, value, site);
}

}  // namespace kgen_cpu
