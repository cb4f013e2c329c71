// The broken rules that an observed run met, each pair of lines once, with how often.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "access.h"

namespace kgen_cpu::observing {

// One side of a finding.
struct Party {
    unsigned block;
    int thread;  // -1: no thread
    uint32_t program_counter;
    AccessKind kind;
};

class Findings {
  public:
    // `what` is a word that Python knows (kgen/cpu/observe.py), `place` the address in words. A
    // fault has one party, a race two.
    void add(const char* what, const std::string& kernel, const std::string& place, int bytes,
             const Party& party, const Party* other = nullptr);
    // True when this kind of finding is known for these instructions; counts it then.
    bool repeats(const char* what, uint32_t program_counter, uint32_t other);
    // Writes each as a line of JSON on stderr.
    void write() const;

  private:
    struct Finding {
        std::string json;
        uint64_t times;
    };
    // In the order of the instructions, so that equal runs say the same.
    std::map<std::tuple<std::string, uint32_t, uint32_t>, Finding> findings_;
};

// Writes a line on stderr: what Python reads, among the reports of runtime/report.h.
void write_line(const std::string& line);

}  // namespace kgen_cpu::observing
