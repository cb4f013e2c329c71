// What is remembered of every word of memory, and which accesses CUDA orders. Happens-before
// is followed exactly inside a group; of the readers of a word two are kept, of different blocks or
// warps where there are such, which is enough to find a later write that is not ordered after all.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "access.h"
#include "clocks.h"
#include "ready_threads.h"

namespace kgen_cpu::observing {

// The least that threads access apart; set once, before a shadow is made.
inline uint32_t word_bytes = 4;
inline uint32_t word_shift = 2;  // by which a number of bytes becomes one of words

// Who accessed a word, where and when. Blocks are numbered through the whole run from 1, so nothing
// has to be cleared when one ends.
struct Stamp {
    uint32_t run_block = 0;  // 0: nobody
    uint32_t program_counter;
    uint32_t time;
    uint32_t slot;
    uint16_t thread;
    AccessKind kind;
    uint8_t bytes;  // one bit for each byte of the word
};

struct Word {
    Stamp writer;
    Stamp readers[2];
};

// The order of the accesses of a run, one group of blocks after the other.
class Order {
  public:
    void begin_launch();
    // Blocks `first` and following, of `threads` threads each.
    void begin_group(unsigned first, int blocks, int threads);
    void set_running(int rank) { rank_ = rank; }

    void barrier_met();
    // __syncwarp orders memory among the lanes of its mask. Shuffles and votes do not.
    void warp_met(int warp, uint32_t mask);
    // An atomic after a fence publishes what the block did; the next fenced atomic there sees it.
    void fence() { is_fenced_[rank_] = true; }
    void atomic(uintptr_t address, bool is_write);
    // Atomics that order memory by themselves.
    void release_atomic(uintptr_t address, int thread, bool is_kept);
    void acquire_atomic(uintptr_t address, int thread);

    Clocks& clocks() { return clocks_; }
    const Clocks& clocks() const { return clocks_; }
    // A thread's number in its group.
    uint32_t number(int rank, int thread) const {
        return static_cast<uint32_t>(rank * threads_ + thread);
    }
    uint32_t number(const Stamp& stamp) const {
        return number(static_cast<int>(stamp.run_block - group_start_), stamp.thread);
    }

    Stamp stamp(const Access& access, int thread, uint8_t bytes) const;
    bool is_of_this_group(const Stamp& stamp) const { return stamp.run_block >= group_start_; }
    bool is_of_this_launch(const Stamp& stamp) const { return stamp.run_block >= launch_start_; }
    // True when what `before` did is visible to who does `now`; both in global memory, or both in
    // shared memory of the group that runs.
    bool is_before(const Stamp& before, const Stamp& now) const;
    bool is_same_thread(const Stamp& a, const Stamp& b) const;
    bool is_same_warp(const Stamp& a, const Stamp& b) const;
    unsigned block_of(const Stamp& stamp) const { return blocks_[stamp.run_block - 1]; }

  private:
    // What a block did until a time.
    struct Published {
        uint32_t run_block, time;
    };
    uint32_t running_block() const { return group_start_ + static_cast<uint32_t>(rank_); }
    bool is_of_this_block(const Stamp& stamp) const { return stamp.run_block == running_block(); }
    bool is_acquired(const Stamp& stamp) const;
    void publish(uintptr_t address);

    int rank_ = 0;
    int threads_ = 0;
    uint32_t launch_start_ = 1;
    uint32_t group_start_ = 1;
    std::vector<unsigned> blocks_;  // of each run block

    Clocks clocks_;
    std::map<uintptr_t, Channel> atomics_;
    std::vector<bool> is_fenced_;                   // by rank
    std::vector<std::vector<Published>> acquired_;  // by rank
    std::map<uintptr_t, std::vector<Published>> released_;
};

}  // namespace kgen_cpu::observing
