// What a run tells its caller: one line of JSON on stderr for each fault.
// (stdout belongs to kernels that print.)
#pragma once

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

}  // namespace kgen_cpu
