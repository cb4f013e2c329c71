// What is remembered of every 4-byte word of memory, and which accesses CUDA orders. Happens-before
// is followed exactly inside a block; of the readers of a word two are kept, of different blocks or
// warps where there are such, which is enough to find a later write that is not ordered after all.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "access.h"
#include "ready_threads.h"

namespace kgen_cpu::observing {

constexpr uint32_t WORD_BYTES = 4;

// Who accessed a word, where and when. A segment is what a block does between two barriers; they
// are numbered through the whole run from 1, so a segment also tells block and launch, and nothing
// has to be cleared when those change.
struct Stamp {
    uint32_t segment = 0;  // 0: nobody
    uint32_t program_counter;
    uint32_t clock;  // of the thread among the lanes of its warp
    uint16_t thread;
    AccessKind kind;
    uint8_t bytes;  // one bit for each byte of the word
};

struct Word {
    Stamp writer;
    Stamp readers[2];
};

// The order of the accesses made by the blocks of a run, one block after the other.
class Order {
  public:
    void begin_launch();
    void begin_block(unsigned block);
    void barrier_met();
    // __syncwarp orders memory among the lanes of its mask. Shuffles and votes do not.
    void warp_met(int warp, uint32_t mask);
    // An atomic after a fence publishes what the block did; the next fenced atomic there sees it.
    void fence() { is_fenced_ = true; }
    void atomic(uintptr_t address);

    Stamp stamp(const Access& access, int thread, uint8_t bytes) const;
    bool is_of_this_block(const Stamp& stamp) const { return stamp.segment >= block_start_; }
    bool is_of_this_launch(const Stamp& stamp) const { return stamp.segment >= launch_start_; }
    // True when what `before` did is visible to the running `thread`; both in global memory, or
    // both in the shared memory of the block that runs.
    bool is_before(const Stamp& before, int thread) const;
    bool is_same_thread(const Stamp& a, const Stamp& b) const;
    bool is_same_warp(const Stamp& a, const Stamp& b) const;
    unsigned block_of(const Stamp& stamp) const;

  private:
    struct Segments {
        uint32_t first, last;
    };
    struct BlockStart {
        uint32_t segment;
        unsigned block;
    };
    bool is_acquired(uint32_t segment) const;

    uint32_t segment_ = 0;
    uint32_t launch_start_ = 1;
    uint32_t block_start_ = 1;
    std::vector<BlockStart> blocks_;

    bool is_fenced_ = false;
    std::vector<Segments> acquired_;
    std::map<uintptr_t, std::vector<Segments>> released_;

    // What each lane knows of the others of its warp since the last barrier.
    uint32_t clocks_[MAX_WARPS][WARP_SIZE][WARP_SIZE];
    uint32_t changed_warps_ = ~0u;  // whose clocks differ from the initial ones
};

}  // namespace kgen_cpu::observing
