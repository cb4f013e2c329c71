// Takes every access of a run: groups it for the counts, and checks it against the shadow.
#pragma once

#include <optional>

#include "checker.h"
#include "memory.h"
#include "warp_log.h"

namespace kgen_cpu::observing {

class Observer {
  public:
    explicit Observer(const Job& job) : memory_(job), checker_(memory_) {}

    void begin_launch(const Launch& launch);
    void begin_block(unsigned block);
    void thread_returned(int thread);
    void barrier_met();
    void warp_met(int warp, const Meeting& meeting, uint32_t selector);
    void end_launch();
    void end_job() { checker_.end_job(); }
    void end_faulty_job() { checker_.write_findings(); }

    void access(const Access& access, int thread);
    void fence() { checker_.order().fence(); }

  private:
    int warps() const { return static_cast<int>((launch_->block + WARP_SIZE - 1) / WARP_SIZE); }

    Memory memory_;
    Checker checker_;
    InstructionNumbers instruction_number_;
    WarpLog logs_[MAX_WARPS];
    uint32_t alive_[MAX_WARPS] = {};
    Counts counts_;
    const Launch* launch_ = nullptr;
};

// The observer of the run; empty before it begins.
extern std::optional<Observer> observer;

}  // namespace kgen_cpu::observing
