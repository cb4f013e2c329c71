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

// The process's exit code when the machine, and no kernel, is why the run cannot be made.
constexpr int EXIT_NO_MEMORY = 5;

// Ends the process with that code and a message on stderr.
[[noreturn]] void end_without_memory(size_t bytes, const char* purpose);

}  // namespace kgen_cpu
