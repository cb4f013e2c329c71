// What a run tells its caller: one line of JSON on stderr for each fault.
// (stdout belongs to kernels that print.)
#pragma once

#include <cstddef>

#include "site.h"

namespace kgen_cpu {

struct Report {
    const char* kernel;
    unsigned block;
    int thread;
    Site site;                    // line 0 when unknown
    const void* program_counter;  // null when the site is known
    const char* message;
};

// Uses no heap and no locks, since signal handlers call it; one write, so lines never mix.
void write_report(const Report& report);

// The process's exit codes when the machine, and no kernel, is why the run cannot be made, and when
// somebody ended it (kgen/cpu/process.py).
constexpr int EXIT_LACKING = 5;
constexpr int EXIT_TERMINATED = 6;

// Ends the process with the first of them and a message on stderr.
[[noreturn]] void end_without_memory(size_t bytes, const char* purpose);
[[noreturn]] void end_without_thread(int error);

// Has `new` do so, too, where it finds no memory.
void end_when_new_fails();

}  // namespace kgen_cpu
