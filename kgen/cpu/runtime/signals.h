// Crashes and the time limit, made into reports.
#pragma once

#include <vector>

#include "block.h"

namespace kgen_cpu {

// The process's exit code when a kernel broke a rule and a report says which.
constexpr int EXIT_FAULT = 3;

// Turns crashes of a kernel into faults, and SIGTERM (the caller's time limit) into a report of
// what each of `blocks` was running, and the end of the process. Before any worker starts.
void install_signal_handlers(std::vector<const Block*> blocks);

// Gives the calling OS thread a stack for its handlers, which cannot run on a full fiber stack.
void use_signal_stack();

}  // namespace kgen_cpu
