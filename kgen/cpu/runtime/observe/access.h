// One access of the running thread, as the compiler's instrumentation reports it.
#pragma once

#include <cstdint>

namespace kgen_cpu::observing {

enum class AccessKind : uint8_t { load, store, atomic, exponential };

struct Access {
    AccessKind kind;
    uint8_t bytes;  // 0 for an exponential
    // Of the instrumented instruction. Without PIE the executable lies in the low 4 GB.
    uint32_t program_counter;
    uintptr_t address;
};

}  // namespace kgen_cpu::observing
