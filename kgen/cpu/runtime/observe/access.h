// One access of the running thread, as the compiler's instrumentation reports it.
#pragma once

#include <cstdint>

namespace kgen_cpu::observing {

// An async_store is made by a message or a bulk copy.
enum class AccessKind : uint8_t { load, store, async_store, atomic, atomic_load, exponential };

constexpr uint32_t OWN_SLOT = ~0u;
// A program counter that names a line of the source instead: the executable lies below 2 GB.
constexpr uint32_t LINE_FLAG = 1u << 31;

struct Access {
    AccessKind kind;
    uint8_t bytes;  // 0 for an exponential
    // Of the instrumented instruction. Without PIE the executable lies in the low 2 GB.
    uint32_t program_counter;
    uintptr_t address;
    // An access that another one makes beside the thread, and when: its slot in the clocks.
    uint32_t slot = OWN_SLOT;
    uint32_t time = 0;
};

}  // namespace kgen_cpu::observing
