// The broken rules that an observed run met: each kind once for the same instructions, with how
// often.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "access.h"

namespace kgen_cpu::observing {

// Where in a buffer or array something happened; `offset` lies outside 0...bytes when it missed.
struct Place {
    std::string buffer;
    int64_t offset;
    size_t bytes;  // of the buffer
};

// Who did it; `thread` -1 means nobody.
struct Party {
    unsigned block;
    int thread;
    uint32_t program_counter;
    AccessKind kind;
};

class Findings {
  public:
    // `what` is a word that kgen/cpu/observe.py knows. A race has two parties, the later one first.
    void add(const char* what, const std::string& kernel, const Place& place,
             const std::vector<Party>& parties, uint64_t times = 1);
    // True when this kind of finding is known for these instructions, in any order; counts it then.
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

// Writes a line on stderr, among the reports of runtime/report.h.
void write_line(const std::string& line);

}  // namespace kgen_cpu::observing
