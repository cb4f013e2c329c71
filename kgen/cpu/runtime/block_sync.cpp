// The intrinsics in which threads meet. Each is one scheduling point, also for the thread that
// comes last: which thread goes on first is the schedule's choice alone.
#include "block.h"
#include "observe.h"

namespace kgen_cpu {

void Block::barrier(Site site) {
    check_barrier(site);
    barrier_site_ = site;
    running_warp().at_barrier |= 1u << running_lane();
    ready_.remove(current_);
    if (++at_barrier_ == thread_count()) release_barrier();
    run_next();
}

void Block::release_barrier() {
    at_barrier_ = 0;
    observing::barrier_met();
    for (int warp = 0; warp * WARP_SIZE < thread_count(); ++warp) {
        ready_.add(warp, warps_[warp].alive);
        warps_[warp].at_barrier = 0;
    }
}

uint64_t Block::warp_op(const Meeting& meeting, uint64_t value, uint32_t selector) {
    check_meeting(meeting);
    Warp& warp = running_warp();
    const int lane = running_lane();
    ready_.remove(current_);
    if (warp.join(lane, meeting, value, selector)) {
        const int reader = warp.evaluate(meeting);
        if (reader >= 0) fault_inactive_source(meeting, reader);
        observing::warp_met(warp_index(current_), meeting, selector);
        ready_.add(warp_index(current_), meeting.mask);
    } else if (warp.can_conflict()) {
        check_conflict(meeting);
    }
    run_next();
    return warp.result(lane);
}

uint32_t Block::active_lanes() const {
    const Warp& warp = warps_[warp_index(current_)];
    return warp.alive & ~warp.at_barrier;
}

void barrier(Site site) { Block::current()->barrier(site); }

uint64_t warp_op(WarpOp op, uint32_t mask, uint64_t value, uint32_t selector, Site site) {
    return Block::current()->warp_op({op, mask, site}, value, selector);
}

uint32_t active_lanes() { return Block::current()->active_lanes(); }

}  // namespace kgen_cpu
