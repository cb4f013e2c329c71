#include "observer.h"

#include <algorithm>

#include "group.h"
#include "observe.h"

namespace kgen_cpu::observing {

namespace {

constexpr int NO_RANK = -1;

}  // namespace

std::optional<Observer> observer;

void Observer::begin_launch(const Launch& launch) {
    launch_ = &launch;
    counts_ = {};
    memory_.begin_launch(launch);
    checker_.begin_launch(launch);
}

void Observer::begin_group(const Group& group) {
    group_ = &group;
    rank_ = NO_RANK;
    const int blocks = group.size();
    std::vector<uintptr_t> images;
    for (int rank = 0; rank < blocks; ++rank) {
        images.push_back(reinterpret_cast<uintptr_t>(group.shared(rank).image()));
    }
    const unsigned first = group.block(0).index();
    memory_.begin_group(first, images);
    checker_.order().begin_group(first, blocks, static_cast<int>(launch_->block));
    warps_.resize(std::max(warps_.size(), images.size()));
    for (int rank = 0; rank < blocks; ++rank) {
        for (int warp = 0; warp < warps(); ++warp) {
            const unsigned lanes = launch_->block - warp * WARP_SIZE;
            warps_[rank].alive[warp] = lanes >= WARP_SIZE ? ~0u : (1u << lanes) - 1;
        }
    }
    phases_.clear();
    fenced_.clear();
    slots_.clear();
    clusters_.assign(blocks / group.cluster_size(), {});
}

// Blocks of a group take turns: whose turn it is now?
void Observer::enter() {
    const int rank = Block::current()->rank();
    if (rank == rank_) return;
    rank_ = rank;
    memory_.set_running(rank_);
    checker_.order().set_running(rank_);
}

void Observer::thread_returned(int thread) {
    enter();
    const int warp = warp_index(thread);
    uint32_t& alive = running().alive[warp];
    alive &= ~(1u << lane_index(thread));
    if (!alive) running().logs[warp].flush(counts_);
}

void Observer::barrier_met() {
    enter();
    counts_.add_barrier(warps());
    for (int warp = 0; warp < warps(); ++warp) running().logs[warp].flush(counts_);
    checker_.order().barrier_met();
}

void Observer::warp_met(int warp, const Meeting& meeting, uint32_t selector) {
    enter();
    WarpLog& log = running().logs[warp];
    counts_.add_warp_op(meeting.op.kind);
    if (log.ends_reduction(meeting.op.kind, selector)) counts_.add_reduction();
    if (meeting.mask == running().alive[warp]) log.flush(counts_);
    if (meeting.op.kind == WarpOpKind::sync) checker_.order().warp_met(warp, meeting.mask);
}

void Observer::fence() {
    enter();
    checker_.order().fence();
}

void Observer::end_launch() {
    write_line("{\"counts\": {\"kernel\": \"" + launch_->name + "\", " + counts_.json() + "}}");
}

void Observer::observe(const Access& access, int thread) {
    bool is_shared = false;
    if (access.kind != AccessKind::exponential) {
        Block& block = *Block::current();
        if (block.is_local(reinterpret_cast<const void*>(access.address))) return;
        enter();
        const Target target = memory_.find(access);
        if (target.kind == Target::Kind::other) return;
        is_shared = target.kind != Target::Kind::global;
        const uintptr_t program_counter = access.program_counter;
        const auto* place = reinterpret_cast<const void*>(program_counter);
        if (is_shared && target.rank != rank_ && group_->has_returned(target.rank)) {
            block.fault_at(place, "accesses the shared memory of block " +
                                      std::to_string(group_->block(target.rank).index()) +
                                      ", which has returned");
        }
        checker_.access(target, access, thread);
        if (target.kind == Target::Kind::stray) {
            block.fault_at(place, "an access that leads out of the kernel's memory");
        }
    }
    log(access, thread, is_shared);
}

void Observer::log(const Access& access, int thread, bool is_shared) {
    const size_t number = instruction_number_(access.program_counter);
    running().logs[warp_index(thread)].add(number, lane_index(thread), access, is_shared);
}

void begin_job(const Job& job) { observer.emplace(job); }
void begin_launch(const Launch& launch) { observer->begin_launch(launch); }
void begin_group(const Group& group) { observer->begin_group(group); }
void thread_returned(int thread) { observer->thread_returned(thread); }
void barrier_met() { observer->barrier_met(); }
void warp_met(int warp, const Meeting& meeting, uint32_t selector) {
    observer->warp_met(warp, meeting, selector);
}
void end_launch() { observer->end_launch(); }
void end_job() { observer->end_job(); }
void end_faulty_job() { observer->end_faulty_job(); }

}  // namespace kgen_cpu::observing
