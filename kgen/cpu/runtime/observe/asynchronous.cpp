// What the runtime tells the observer of clusters, mbarriers and asynchronous copies. A copy is
// checked when it begins; until it is waited for, what it does is known to nobody: it has a slot of
// its own in the clocks.
#include <algorithm>

#include "group.h"
#include "observe.h"
#include "observer.h"

namespace kgen_cpu::observing {

namespace {

constexpr size_t PART_BYTES = 16;

uint32_t counter_of(Site site) { return LINE_FLAG | static_cast<uint32_t>(site.line); }

}  // namespace

uint32_t Observer::number() const {
    return static_cast<uint32_t>(rank_ * static_cast<int>(launch_->block) +
                                 Block::current()->thread());
}

void Observer::access(Access access, const volatile void* address, size_t bytes, bool is_counted) {
    enter();
    const int thread = Block::current()->thread();
    access.address = reinterpret_cast<uintptr_t>(address);
    for (size_t done = 0; done < bytes; done += PART_BYTES) {
        access.bytes = static_cast<uint8_t>(std::min(PART_BYTES, bytes - done));
        const Target target = memory_.find(access);
        if (target.kind == Target::Kind::other) return;
        checker_.access(target, access, thread);
        if (is_counted) log(access, thread, target.kind != Target::Kind::global);
        access.address += access.bytes;
    }
}

void Observer::count_bulk(AccessKind kind, bool is_shared, const void* address, size_t bytes) {
    auto part = reinterpret_cast<uintptr_t>(address);
    const uintptr_t end = part + bytes;
    while (part < end) {
        Request request = {kind, PART_BYTES, is_shared, 0, {}};
        for (int lane = 0; lane < WARP_SIZE && part < end; ++lane, part += PART_BYTES) {
            request.lanes |= 1u << lane;
            request.addresses[lane] = part;
        }
        counts_.add(request);
    }
}

uint32_t Observer::slot_of(Beside beside) {
    const auto [found, is_new] = slots_.try_emplace({beside, number()}, 0);
    if (is_new) found->second = checker_.order().clocks().new_slot();
    return found->second;
}

Observer::Phases& Observer::phases(const uint64_t* barrier) {
    const auto [found, is_new] = phases_.try_emplace(barrier);
    if (is_new) found->second.slot = checker_.order().clocks().new_slot();
    return found->second;
}

void Observer::cluster_arrived(bool is_relaxed) {
    enter();
    Channel& channel = clusters_[rank_ / group_->cluster_size()];
    if (!is_relaxed) {
        checker_.order().clocks().release(number(), channel);
    } else if (const auto fenced = fenced_.find(number()); fenced != fenced_.end()) {
        join(channel.gathered, *fenced->second);
        fenced_.erase(fenced);
    }
}

void Observer::mbarrier_init_fenced() {
    enter();
    fenced_[number()] = checker_.order().clocks().snapshot(number());
}

void Observer::cluster_met() {
    enter();
    checker_.order().clocks().publish(clusters_[rank_ / group_->cluster_size()]);
    // Threads that only arrived go on meanwhile: what a warp did is not put together here.
    for (int rank = 0; rank < group_->cluster_size(); ++rank) counts_.add_barrier(warps());
}

void Observer::cluster_waited() {
    enter();
    const Channel& channel = clusters_[rank_ / group_->cluster_size()];
    checker_.order().clocks().acquire(number(), channel.published);
}

void Observer::use_mbarrier(const uint64_t* barrier, AccessKind kind, Site site) {
    access({kind, 0, counter_of(site), 0}, barrier, sizeof *barrier, false);
}

void Observer::mbarrier_arrived(const uint64_t* barrier) {
    enter();
    checker_.order().clocks().release(number(), phases(barrier).channel);
}

void Observer::mbarrier_met(const uint64_t* barrier) {
    checker_.order().clocks().publish(phases(barrier).channel);
}

void Observer::mbarrier_waited(const uint64_t* barrier) {
    enter();
    checker_.order().clocks().acquire(number(), phases(barrier).channel.published);
}

uint32_t Observer::message_sent(const Message& message, const uint64_t* barrier) {
    const uint32_t counter = counter_of(message.site);
    const uint32_t time = checker_.order().clocks().next_time();
    const bool is_bulk = message.from != nullptr;
    if (is_bulk) {
        require_fenced(AccessKind::store, counter, barrier, sizeof *barrier);
        require_fenced(AccessKind::store, counter, message.to, message.bytes);
        access({AccessKind::load, 0, counter, 0}, message.from, message.bytes, false);
        count_bulk(AccessKind::load, false, message.from, message.bytes);
        count_bulk(AccessKind::store, true, message.to, message.bytes);
    }
    access({AccessKind::async_store, 0, counter, 0, phases(barrier).slot, time}, message.to,
           message.bytes, !is_bulk);
    phases(barrier).sent[time] = checker_.order().clocks().snapshot(number());
    return time;
}

void Observer::message_came(const Message& message, const uint64_t* barrier) {
    Phases& phases = this->phases(barrier);
    // Telling the mbarrier releases what the sender did before.
    const auto sent = phases.sent.find(message.time);
    join(phases.channel.gathered, *sent->second);
    phases.sent.erase(sent);
    set_time(phases.channel.gathered, phases.slot, message.time);
}

uint32_t Observer::pipeline_begins(const Copy& copy) {
    enter();
    const uint32_t time = checker_.order().clocks().next_time();
    const uint32_t counter = counter_of(copy.site);
    access({AccessKind::load, 0, counter, 0}, copy.from, copy.bytes, true);
    access({AccessKind::store, 0, counter, 0, slot_of(Beside::pipeline), time}, copy.to, copy.bytes,
           false);
    return time;
}

uint32_t Observer::bulk_store_begins(const Copy& copy) {
    enter();
    const uint32_t time = checker_.order().clocks().next_time();
    const uint32_t counter = counter_of(copy.site);
    access({AccessKind::load, 0, counter, 0, slot_of(Beside::bulk_stores), time}, copy.from,
           copy.bytes, false);
    count_bulk(AccessKind::load, true, copy.from, copy.bytes);
    require_fenced(AccessKind::load, counter, copy.from, copy.bytes);
    return time;
}

void Observer::require_fenced(AccessKind kind, uint32_t counter, const void* address,
                              size_t bytes) {
    const int thread = Block::current()->thread();
    for (size_t done = 0; done < bytes; done += PART_BYTES) {
        const auto size = static_cast<uint8_t>(std::min(PART_BYTES, bytes - done));
        const Access part = {kind, size, counter, reinterpret_cast<uintptr_t>(address) + done};
        checker_.check_fence(memory_.find(part), part, thread);
    }
}

void Observer::waited(Beside beside, uint32_t time) {
    enter();
    checker_.order().clocks().learn(number(), slot_of(beside), time);
}

void Observer::bulk_store_written(const Copy& copy) {
    access({AccessKind::async_store, 0, counter_of(copy.site), 0}, copy.to, copy.bytes, false);
    count_bulk(AccessKind::store, false, copy.to, copy.bytes);
}

void Observer::proxy_fence() {
    enter();
    checker_.order().clocks().fence(number());
}

void Observer::atomic_accessed(const volatile void* address, unsigned bytes, AtomicAccess how,
                               Site site) {
    const AccessKind kind = how.writes ? AccessKind::atomic : AccessKind::atomic_load;
    access({kind, 0, counter_of(site), 0}, address, bytes, true);
    const bool is_strong = how.order == __ATOMIC_ACQ_REL || how.order == __ATOMIC_SEQ_CST;
    const auto place = reinterpret_cast<uintptr_t>(address);
    const int thread = Block::current()->thread();
    if (how.reads && (is_strong || how.order == __ATOMIC_ACQUIRE)) {
        checker_.order().acquire_atomic(place, thread);
    }
    if (how.writes && (is_strong || how.order == __ATOMIC_RELEASE)) {
        checker_.order().release_atomic(place, thread, how.reads);
    }
}

void cluster_arrived(bool is_relaxed) { observer->cluster_arrived(is_relaxed); }
void mbarrier_init_fenced() { observer->mbarrier_init_fenced(); }
void cluster_met() { observer->cluster_met(); }
void cluster_waited() { observer->cluster_waited(); }
void mbarrier_initialised(const uint64_t* barrier, Site site) {
    observer->use_mbarrier(barrier, AccessKind::store, site);
}
void mbarrier_used(const uint64_t* barrier, Site site) {
    observer->use_mbarrier(barrier, AccessKind::atomic_load, site);
}
void mbarrier_arrived(const uint64_t* barrier) { observer->mbarrier_arrived(barrier); }
void mbarrier_met(const uint64_t* barrier) { observer->mbarrier_met(barrier); }
void mbarrier_waited(const uint64_t* barrier) { observer->mbarrier_waited(barrier); }
uint32_t message_sent(const Message& message, const uint64_t* barrier) {
    return observer->message_sent(message, barrier);
}
void message_came(const Message& message, const uint64_t* barrier) {
    observer->message_came(message, barrier);
}
uint32_t pipeline_begins(const Copy& copy) { return observer->pipeline_begins(copy); }
void pipeline_ends(const Copy& copy) { observer->waited(Observer::Beside::pipeline, copy.time); }
uint32_t bulk_store_begins(const Copy& copy) { return observer->bulk_store_begins(copy); }
void bulk_store_read(const Copy& copy) {
    observer->waited(Observer::Beside::bulk_stores, copy.time);
}
void bulk_store_written(const Copy& copy) { observer->bulk_store_written(copy); }
void proxy_fence() { observer->proxy_fence(); }

}  // namespace kgen_cpu::observing

void kgen_cpu::atomic_accessed(const volatile void* address, unsigned bytes, AtomicAccess access,
                               Site site) {
    observing::observer->atomic_accessed(address, bytes, access, site);
}
