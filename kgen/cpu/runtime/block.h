// Runs the threads of one block, as fibers of the calling OS thread.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "async_copy.h"
#include "fiber.h"
#include "group_calls.h"
#include "job.h"
#include "mbarrier.h"
#include "ready_threads.h"
#include "shared_memory.h"
#include "warp.h"

namespace kgen_cpu {

class Group;

// A group has one for each of its ranks, and runs many blocks with it, one after the other.
// block.cpp switches between threads, block_sync.cpp makes them meet, cluster.cpp, mbarrier.cpp and
// async_copy.cpp do so across blocks, block_fault.cpp reports those that cannot.
class Block {
  public:
    Block(const Job& job, Group& group, int rank) : job_(job), group_(group), rank_(rank) {}

    // Makes the block of that index the one to run, in `shared`. Any OS thread may call it.
    void prepare(const Launch& launch, unsigned index, SharedMemory& shared);
    // Called by the OS thread that `shared` belongs to. Returns when every thread has returned, or,
    // with false, when a fault ended the block or its group.
    bool run();

    // The intrinsics, called by the running thread.
    void barrier(Site site);
    uint64_t warp_op(const Meeting& meeting, uint64_t value, uint32_t selector);
    uint32_t active_lanes() const;
    void* map_shared(const volatile void* address, unsigned rank, Site site);
    void cluster_arrive(bool is_relaxed, Site site);
    void cluster_wait(Site site);
    void mbarrier_init(uint64_t* address, uint32_t count, Site site);
    void mbarrier_arrive(uint64_t* address, uint32_t arrivals, uint32_t expected, Reach reach,
                         Site site);
    void mbarrier_wait(uint64_t* address, uint32_t parity, Site site);
    void store_async(void* to, const void* value, uint32_t bytes, uint64_t* barrier, Site site);
    void pipeline_copy(void* to, const void* from, size_t bytes, Site site);
    void pipeline_wait(size_t pending);
    void bulk_load(void* to, const void* from, uint32_t bytes, uint64_t* barrier, Site site);
    void bulk_store(void* to, const void* from, uint32_t bytes, Site site);
    void bulk_wait(size_t pending, bool is_read_only);
    ThreadCopies& copies() { return copies_[current_]; }
    bool polls_again(const volatile void* address, uint64_t value, Site site);

    // What the group asks. True when a thread can go on.
    bool is_able() const { return ready_.any(); }
    void wake(int thread) { ready_.add(warp_index(thread), 1u << lane_index(thread)); }
    // Lets the threads that poll look again.
    void poll_again();
    void end_cluster_wait();
    // What at most `count` of the threads wait for.
    std::string waits(int count) const;
    // How much this block's waits explain of a deadlock: most where a message or a value is
    // missing, less at the cluster's barrier, nothing inside the block.
    int explanation() const;
    void report_deadlock(const std::string& others) const;

    // Reports what `thread` did at `site` and ends the block.
    [[noreturn]] __attribute__((format(printf, 4, 5))) void fault(Site site, int thread,
                                                                  const char* format, ...);
    // The same for the running thread, at an instruction instead of a line.
    [[noreturn]] void fault_at(const void* program_counter, const std::string& message);
    // Reports what runs, if anything does. Signal handlers of other OS threads may call it.
    void report_timeout(const void* program_counter) const;

    const Job& job() const { return job_; }
    const Launch& launch() const { return *launch_; }
    int rank() const { return rank_; }
    unsigned index() const { return index_; }
    unsigned cluster_rank() const { return index_ % launch_->cluster_size; }
    int thread() const { return current_; }
    bool is_running() const { return is_running_; }
    bool overflowed_at(const void* address) const;
    // True for the running thread's local variables.
    bool is_local(const void* address) const { return fiber_of_[current_]->holds(address); }

    // The block that the calling OS thread runs or ran last; null before the first.
    static Block* current();

  private:
    struct Waiter {
        int thread;
        Site site;
    };
    struct Poller {
        int thread;
        const volatile void* address;
        uint64_t value;
        Site site;
    };

    static void run_threads();
    void reset(const Launch& launch, unsigned index);
    void thread_returned();
    void run_next();
    int next_thread();
    void set_running(int thread);
    Fiber* take_fiber();
    [[noreturn]] void abandon();

    int thread_count() const { return static_cast<int>(launch_->block); }
    Warp& running_warp() { return warps_[warp_index(current_)]; }
    int running_lane() const { return lane_index(current_); }
    void release_barrier();

    void let_others_run();
    void require_present(int rank, const char* action, Site site);
    void leave_cluster();
    Mbarrier& mbarrier_at(uint64_t* address, Reach reach, const char* act, Site site);
    void deliver(const uint64_t* address, Mbarrier& barrier);
    void end_phase(const uint64_t* address, Mbarrier& barrier);
    void send(const Message& message, uint64_t* address, Site site);
    void require_bulk(const void* to, const void* from, uint32_t bytes, Site site);
    void read_source(Batch& batch);
    void write_target(const Batch& batch);
    void end_copies();

    void check_barrier(Site site);
    void check_meeting(const Meeting& meeting);
    void check_conflict(const Meeting& meeting);
    void check_return();
    void check_messages();
    void check_shared_guard();
    [[noreturn]] void fault_absent(const Gathering& gathering, const std::string& what);
    [[noreturn]] void fault_inactive_source(const Meeting& meeting, int lane);
    std::string whereabouts(int thread) const;
    // What the thread waits for that other blocks may do; line 0 when it does not.
    std::pair<Site, std::string> outer_wait(int thread) const;
    bool is_alive(int thread) const {
        return warps_[warp_index(thread)].alive >> lane_index(thread) & 1;
    }
    int first_waiting() const;
    int first_at_barrier() const;
    int first_returned() const;

    const Job& job_;
    Group& group_;
    const int rank_;  // in the group
    SharedMemory* shared_ = nullptr;
    const Launch* launch_ = nullptr;
    unsigned index_ = 0;
    bool is_running_ = false;
    bool is_faulty_ = false;

    int current_ = 0;  // the running thread
    int returned_ = 0;
    ReadyThreads ready_;
    std::array<Warp, MAX_WARPS> warps_;

    int at_barrier_ = 0;
    Site barrier_site_ = {};

    // The phase of the cluster's barrier at which each thread has arrived; 0 when at none.
    std::array<unsigned, MAX_THREADS> arrivals_;
    std::vector<Waiter> cluster_waiters_;
    std::vector<Poller> pollers_;
    // The value that a thread last found at an address.
    std::map<std::pair<const volatile void*, int>, uint64_t> polled_;
    AsyncCopies copies_;

    Fiber outside_;  // the OS thread itself
    std::vector<std::unique_ptr<Fiber>> fibers_;
    std::vector<Fiber*> idle_;
    std::array<Fiber*, MAX_THREADS> fiber_of_;  // null before the thread starts
};

}  // namespace kgen_cpu
