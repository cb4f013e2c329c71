// Checks every access against what is known of its memory: does it exist, has somebody written it,
// and is it ordered after what other threads did there?
#pragma once

#include <string>

#include "findings.h"
#include "memory.h"
#include "shadow.h"

namespace kgen_cpu::observing {

class Checker {
  public:
    explicit Checker(Memory& memory) : memory_(memory) {}

    void begin_launch(const Launch& launch);
    Order& order() { return order_; }
    void access(const Target& target, const Access& access, int thread);
    // The thread's bulk copy will touch these bytes, and comes after what was written before a
    // proxy fence.
    void check_fence(const Target& target, const Access& access, int thread);
    // Checks the outputs and writes what was found.
    void end_job();
    void write_findings() const { findings_.write(); }

  private:
    void check_word(Region& region, uintptr_t address, const Stamp& now);
    void check_read(Region& region, const Word& word, uintptr_t address, const Stamp& now);
    void check_write(Region& region, const Word& word, uintptr_t address, const Stamp& now);
    // Keeps `now` among the readers, unless those there say enough.
    void keep_reader(const Region& region, Word& word, const Stamp& now) const;
    void check_output(Region& output);

    // False for what nobody did, or did to shared memory that another block had there.
    bool is_live(const Region& region, const Stamp& stamp) const;
    bool is_race(const Region& region, const Stamp& before, const Stamp& now) const;
    void report(const char* what, uintptr_t address, const Stamp& now,
                const Stamp* before = nullptr);
    Party party(const Stamp& stamp) const;

    Memory& memory_;
    Order order_;
    Findings findings_;
    std::string kernel_;
};

}  // namespace kgen_cpu::observing
