// Runs the threads of one block, as fibers of the calling OS thread.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "fiber.h"
#include "job.h"
#include "ready_threads.h"
#include "shared_memory.h"
#include "warp.h"

namespace kgen_cpu {

// A worker makes one and runs many blocks with it, one after the other. block.cpp switches between
// threads, block_sync.cpp makes them meet, block_fault.cpp reports those that cannot.
class Block {
  public:
    explicit Block(const Job& job) : job_(job) {}

    // Returns when every thread has returned, or, with false, when a fault was reported.
    bool run(const Launch& launch, unsigned index, SharedMemory& shared);

    // The intrinsics, called by the running thread.
    void barrier(Site site);
    uint64_t warp_op(const Meeting& meeting, uint64_t value, uint32_t selector);
    uint32_t active_lanes() const;

    // Reports what `thread` did at `site` and ends the block.
    [[noreturn]] __attribute__((format(printf, 4, 5))) void fault(Site site, int thread,
                                                                  const char* format, ...);
    // The same for the running thread, at an instruction instead of a line.
    [[noreturn]] void fault_at(const void* program_counter, const std::string& message);
    // Reports what runs, if anything does. Signal handlers of other OS threads may call it.
    void report_timeout(const void* program_counter) const;

    const Job& job() const { return job_; }
    int thread() const { return current_; }
    bool is_running() const { return is_running_; }
    bool overflowed_at(const void* address) const;
    // True for the running thread's local variables.
    bool is_local(const void* address) const { return fiber_of_[current_]->holds(address); }

    // The block that the calling OS thread runs or ran last; null before the first.
    static Block* current();

  private:
    static void run_threads();
    void reset(const Launch& launch, unsigned index);
    void thread_returned();
    void run_next();
    void set_running(int thread);
    Fiber* take_fiber();
    [[noreturn]] void abandon();

    int thread_count() const { return static_cast<int>(launch_->block); }
    Warp& running_warp() { return warps_[warp_index(current_)]; }
    int running_lane() const { return lane_index(current_); }
    void release_barrier();

    void check_barrier(Site site);
    void check_meeting(const Meeting& meeting);
    void check_conflict(const Meeting& meeting);
    void check_return();
    void check_shared_guard(const SharedMemory& shared);
    [[noreturn]] void fault_absent(const Gathering& gathering, const std::string& what);
    [[noreturn]] void fault_inactive_source(const Meeting& meeting, int lane);
    [[noreturn]] void fault_deadlock();
    std::string whereabouts(int thread) const;
    int first_at_barrier() const;
    int first_returned() const;

    const Job& job_;
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

    Fiber outside_;  // the OS thread itself
    std::vector<std::unique_ptr<Fiber>> fibers_;
    std::vector<Fiber*> idle_;
    std::array<Fiber*, MAX_THREADS> fiber_of_;  // null before the thread starts
};

}  // namespace kgen_cpu
