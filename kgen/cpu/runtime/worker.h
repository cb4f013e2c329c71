// An OS thread's share of a launch.
#pragma once

#include <atomic>
#include <cstdint>

#include "block.h"

namespace kgen_cpu {

class Worker {
  public:
    explicit Worker(const Job& job) : block_(job) {}

    // Runs blocks until none is left, or one has a fault: nobody starts another block then. Those
    // that run go on, so the lowest faulty block is always among the reported ones.
    void run(const Launch& launch, std::atomic<uint64_t>& next_block);

    bool is_faulty() const { return is_faulty_; }
    const Block& block() const { return block_; }

  private:
    Block block_;
    bool is_faulty_ = false;
};

}  // namespace kgen_cpu
