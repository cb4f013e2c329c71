#include "warp.h"

namespace kgen_cpu {

void Warp::reset(uint32_t lanes) {
    alive = lanes;
    at_barrier = 0;
    gathering_count_ = 0;
}

bool Warp::join(int lane, const Meeting& meeting, uint64_t value, uint32_t selector) {
    values_[lane] = value;
    selectors_[lane] = selector;
    int i = 0;
    while (i < gathering_count_ && !(gatherings_[i].meeting == meeting)) ++i;
    if (i == gathering_count_) gatherings_[gathering_count_++] = {meeting, 0};
    Gathering& gathering = gatherings_[i];
    gathering.arrived |= 1u << lane;
    const bool is_complete = gathering.arrived == meeting.mask;
    if (is_complete) gathering = gatherings_[--gathering_count_];
    return is_complete;
}

int Warp::evaluate(const Meeting& meeting) {
    switch (meeting.op.kind) {
        case WarpOpKind::sync: return -1;
        case WarpOpKind::ballot: give_all(votes(meeting.mask)); return -1;
        case WarpOpKind::any: give_all(votes(meeting.mask) != 0); return -1;
        case WarpOpKind::all: give_all(votes(meeting.mask) == meeting.mask); return -1;
        default: break;
    }
    for (uint32_t lanes = meeting.mask; lanes; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);
        const int from = source(meeting.op, lane);
        if (!(meeting.mask >> from & 1)) return lane;
        results_[lane] = values_[from];
    }
    return -1;
}

uint32_t Warp::votes(uint32_t mask) const {
    uint32_t votes = 0;
    for (int lane = 0; lane < WARP_SIZE; ++lane) {
        votes |= static_cast<uint32_t>(values_[lane] != 0) << lane;
    }
    return votes & mask;  // the other lanes' values are old ones
}

void Warp::give_all(uint64_t result) {
    for (uint64_t& lane_result : results_) lane_result = result;
}

// As the PTX manual's pseudo-code of `shfl.sync` has it: a lane whose source lies outside its
// segment keeps its own value, except that an xor may read from an earlier segment.
int Warp::source(WarpOp op, int lane) const {
    const int first = lane & ~(op.width - 1);
    const int last = first + op.width - 1;
    const int64_t selector = selectors_[lane];
    switch (op.kind) {
        case WarpOpKind::shfl: return first + static_cast<int>(selector & (op.width - 1));
        case WarpOpKind::shfl_up:
            return static_cast<int>(lane - selector >= first ? lane - selector : lane);
        case WarpOpKind::shfl_down:
            return static_cast<int>(lane + selector <= last ? lane + selector : lane);
        case WarpOpKind::shfl_xor:
            return static_cast<int>((lane ^ selector) <= last ? lane ^ selector : lane);
        default: return lane;
    }
}

const Gathering* Warp::waiting_for(int lane) const {
    for (int i = 0; i < gathering_count_; ++i) {
        if (gatherings_[i].meeting.mask >> lane & 1) return &gatherings_[i];
    }
    return nullptr;
}

const Gathering* Warp::joined_by(int lane) const {
    for (int i = 0; i < gathering_count_; ++i) {
        if (gatherings_[i].arrived >> lane & 1) return &gatherings_[i];
    }
    return nullptr;
}

const Gathering* Warp::conflict(int lane, const Meeting& meeting) const {
    for (int i = 0; i < gathering_count_; ++i) {
        const Gathering& other = gatherings_[i];
        const bool waits_for_us = other.meeting.mask >> lane & 1;
        const bool we_wait_for_it = other.arrived & meeting.mask;
        if (waits_for_us && we_wait_for_it && !(other.meeting == meeting)) return &other;
    }
    return nullptr;
}

const char* name_of(WarpOpKind kind) {
    switch (kind) {
        case WarpOpKind::sync: return "__syncwarp";
        case WarpOpKind::shfl: return "__shfl_sync";
        case WarpOpKind::shfl_up: return "__shfl_up_sync";
        case WarpOpKind::shfl_down: return "__shfl_down_sync";
        case WarpOpKind::shfl_xor: return "__shfl_xor_sync";
        case WarpOpKind::ballot: return "__ballot_sync";
        case WarpOpKind::any: return "__any_sync";
        case WarpOpKind::all: return "__all_sync";
    }
    __builtin_unreachable();
}

}  // namespace kgen_cpu
