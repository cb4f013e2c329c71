// Takes every access of a run: groups it for the counts, and checks it against the shadow.
#pragma once

#include <optional>

#include "findings.h"
#include "memory.h"
#include "warp_log.h"

namespace kgen_cpu::observing {

class Observer {
  public:
    explicit Observer(const Job& job) : memory_(job) {}

    void begin_launch(const Launch& launch);
    void begin_block(unsigned block);
    void thread_returned(int thread);
    void barrier_met();
    void warp_met(int warp, const Meeting& meeting, uint32_t selector);
    void end_launch();
    void end_job();

    void access(const Access& access, int thread);
    void fence() { order_.fence(); }

  private:
    void check(Region& region, const Access& access, int thread);
    void check_word(Region& region, size_t word, const Stamp& stamp);
    void read_word(Region& region, Word& word, uintptr_t address, const Stamp& stamp);
    void write_word(Region& region, Word& word, uintptr_t address, const Stamp& stamp);
    bool is_race(const Region& region, const Stamp& before, const Stamp& now) const;
    void keep_reader(Word& word, const Stamp& reader);
    void report_race(const Region& region, uintptr_t address, const Stamp& before,
                     const Stamp& now);
    void report_fault(const char* what, uintptr_t address, const Stamp& stamp, int bytes);
    void check_written(Region& output);
    Party party(const Stamp& stamp) const;
    void flush_warps();
    int warps() const { return static_cast<int>((launch_->block + WARP_SIZE - 1) / WARP_SIZE); }

    Memory memory_;
    Order order_;
    Findings findings_;
    InstructionNumbers instruction_number_;
    WarpLog logs_[MAX_WARPS];
    uint32_t alive_[MAX_WARPS] = {};
    Counts counts_;
    const Launch* launch_ = nullptr;
};

// The observer of the run; empty before it begins.
extern std::optional<Observer> observer;

}  // namespace kgen_cpu::observing
