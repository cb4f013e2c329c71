#include "warp_log.h"

#include <algorithm>

extern "C" char __executable_start, etext;

namespace kgen_cpu::observing {

InstructionNumbers::InstructionNumbers()
    : numbers_(&etext - &__executable_start, -1),
      first_(static_cast<uint32_t>(reinterpret_cast<uintptr_t>(&__executable_start))) {}

void WarpLog::add(size_t instruction, int lane, const Access& access, bool is_shared) {
    if (instruction >= instructions_.size()) instructions_.resize(instruction + 1);
    Instruction& executed = instructions_[instruction];
    if (executed.requests.empty()) executed_.push_back(instruction);
    const uint32_t k = executed.executions[lane]++;
    if (k == executed.requests.size()) {
        executed.requests.push_back(static_cast<uint32_t>(requests_.size()));
        requests_.push_back({access.kind, access.bytes, is_shared, 0, {}});
    }
    Request& request = requests_[executed.requests[k]];
    request.lanes |= 1u << lane;
    request.addresses[lane] = access.address;
}

void WarpLog::flush(Counts& counts) {
    for (const Request& request : requests_) counts.add(request);
    for (const size_t instruction : executed_) {
        Instruction& executed = instructions_[instruction];
        std::fill_n(executed.executions, WARP_SIZE, 0);
        executed.requests.clear();
    }
    executed_.clear();
    requests_.clear();
}

// A pair of values takes two shuffles of the same distance.
bool WarpLog::ends_reduction(WarpOpKind kind, uint32_t distance) {
    if (kind != WarpOpKind::shfl_down && kind != WarpOpKind::shfl_up &&
        kind != WarpOpKind::shfl_xor) {
        return false;
    }
    const bool is_end = distance == 1 && distance_ == 2;
    distance_ = distance;
    return is_end;
}

}  // namespace kgen_cpu::observing
