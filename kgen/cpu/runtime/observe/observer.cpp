#include "observer.h"

#include "block.h"
#include "observe.h"

namespace kgen_cpu::observing {

std::optional<Observer> observer;

void Observer::begin_launch(const Launch& launch) {
    launch_ = &launch;
    counts_ = {};
    memory_.begin_launch(launch);
    checker_.begin_launch(launch);
}

void Observer::begin_block(unsigned block) {
    checker_.order().begin_block(block);
    for (int warp = 0; warp < warps(); ++warp) {
        const unsigned lanes = launch_->block - warp * WARP_SIZE;
        alive_[warp] = lanes >= WARP_SIZE ? ~0u : (1u << lanes) - 1;
    }
}

void Observer::thread_returned(int thread) {
    const int warp = warp_index(thread);
    alive_[warp] &= ~(1u << lane_index(thread));
    if (!alive_[warp]) logs_[warp].flush(counts_);
}

void Observer::barrier_met() {
    counts_.add_barrier(warps());
    for (int warp = 0; warp < warps(); ++warp) logs_[warp].flush(counts_);
    checker_.order().barrier_met();
}

void Observer::warp_met(int warp, const Meeting& meeting, uint32_t selector) {
    counts_.add_warp_op(meeting.op.kind);
    if (logs_[warp].ends_reduction(meeting.op.kind, selector)) counts_.add_reduction();
    if (meeting.mask == alive_[warp]) logs_[warp].flush(counts_);
    if (meeting.op.kind == WarpOpKind::sync) checker_.order().warp_met(warp, meeting.mask);
}

void Observer::end_launch() {
    write_line("{\"counts\": {\"kernel\": \"" + launch_->name + "\", " + counts_.json() + "}}");
}

void Observer::access(const Access& access, int thread) {
    bool is_shared = false;
    if (access.kind != AccessKind::exponential) {
        Block& block = *Block::current();
        if (block.is_local(reinterpret_cast<const void*>(access.address))) return;
        const Target target = memory_.find(access);
        if (target.kind == Target::Kind::other) return;
        is_shared = target.kind != Target::Kind::global;
        checker_.access(target, access, thread);
        if (target.kind == Target::Kind::stray) {
            const uintptr_t program_counter = access.program_counter;
            block.fault_at(reinterpret_cast<const void*>(program_counter),
                           "an access that leads out of the kernel's memory");
        }
    }
    const size_t number = instruction_number_(access.program_counter);
    logs_[warp_index(thread)].add(number, lane_index(thread), access, is_shared);
}

void begin_job(const Job& job) { observer.emplace(job); }
void begin_launch(const Launch& launch) { observer->begin_launch(launch); }
void begin_block(unsigned block) { observer->begin_block(block); }
void thread_returned(int thread) { observer->thread_returned(thread); }
void barrier_met() { observer->barrier_met(); }
void warp_met(int warp, const Meeting& meeting, uint32_t selector) {
    observer->warp_met(warp, meeting, selector);
}
void cluster_arrived(unsigned, int, bool) {}
void cluster_met(unsigned) {}
void cluster_waited(unsigned, int) {}
void mbarrier_arrived(const uint64_t*, unsigned, int) {}
void mbarrier_met(const uint64_t*) {}
void mbarrier_waited(const uint64_t*, unsigned, int) {}
void message_sent(const Message&) {}
void message_came(const uint64_t*, const Message&) {}
void copy_begins(const Copy&, bool) {}
void copy_ends(const Copy&, bool) {}
void proxy_fence() {}
void end_launch() { observer->end_launch(); }
void end_job() { observer->end_job(); }
void end_faulty_job() { observer->end_faulty_job(); }

}  // namespace kgen_cpu::observing
