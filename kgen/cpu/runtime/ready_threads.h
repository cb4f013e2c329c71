// Which threads of a block can run, and which of them runs next.
#pragma once

#include <cstdint>

namespace kgen_cpu {

constexpr int WARP_SIZE = 32;
constexpr int MAX_WARPS = 32;
constexpr int MAX_THREADS = MAX_WARPS * WARP_SIZE;

// Unsigned division is a shift; threads are never negative.
inline int warp_index(int thread) {
    return static_cast<int>(static_cast<unsigned>(thread) / WARP_SIZE);
}
inline int lane_index(int thread) {
    return static_cast<int>(static_cast<unsigned>(thread) % WARP_SIZE);
}

// The order in which a block's threads run between two meetings (barrier or warp operation).
enum class Schedule {
    in_order,     // 0, 1, 2, ...
    reversed,     // the last thread first
    warp_greedy,  // a warp goes as far as it can before the next one gets the processor
    random,       // from a seed
};

// The next number of a random sequence.
uint64_t random_number(uint64_t& state);

// A set of threads, one bit each.
class ReadyThreads {
  public:
    // A block gets the same random order whichever worker runs it.
    void reset(Schedule schedule, uint64_t seed, int threads);

    void add(int warp, uint32_t lanes);
    void remove(int thread);
    bool any() const { return warps_ != 0; }

    // The thread to run first of all; some thread must be ready.
    int first();
    // The thread to run after `current`, which may be the same one; -1 when none is ready.
    int next(int current);

  private:
    int first_from(int thread) const;  // lowest ready thread >= thread, or -1
    int last_until(int thread) const;  // highest ready thread <= thread, or -1
    int from_or_wrap(int thread) const;
    int random_thread();

    Schedule schedule_ = Schedule::in_order;
    uint64_t random_state_ = 0;
    int threads_ = 0;
    uint32_t lanes_[MAX_WARPS] = {};
    uint32_t warps_ = 0;  // the warps that have a ready lane
};

}  // namespace kgen_cpu
