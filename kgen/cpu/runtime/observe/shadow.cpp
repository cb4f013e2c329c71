#include "shadow.h"

#include <algorithm>
#include <numeric>

namespace kgen_cpu::observing {

void Order::begin_launch() {
    launch_start_ = static_cast<uint32_t>(blocks_.size()) + 1;
    released_.clear();
}

void Order::begin_group(unsigned first, int blocks, int threads) {
    group_start_ = static_cast<uint32_t>(blocks_.size()) + 1;
    for (int rank = 0; rank < blocks; ++rank) blocks_.push_back(first + rank);
    threads_ = threads;
    rank_ = 0;
    clocks_.reset(static_cast<uint32_t>(blocks * threads));
    atomics_.clear();
    is_fenced_.assign(blocks, false);
    acquired_.assign(blocks, {});
}

void Order::barrier_met() {
    std::vector<uint32_t> threads(threads_);
    std::iota(threads.begin(), threads.end(), number(rank_, 0));
    clocks_.meet(threads);
}

void Order::warp_met(int warp, uint32_t mask) {
    std::vector<uint32_t> threads;
    for (uint32_t lanes = mask; lanes; lanes &= lanes - 1) {
        threads.push_back(number(rank_, warp * WARP_SIZE + __builtin_ctz(lanes)));
    }
    clocks_.meet(threads);
}

void Order::publish(uintptr_t address) {
    std::vector<Published>& released = released_[address];
    if (released.empty() || released.back().run_block != running_block()) {
        released.push_back({running_block(), 0});
    }
    released.back().time = clocks_.time();
}

void Order::atomic(uintptr_t address, bool is_write) {
    if (!is_fenced_[rank_]) return;
    const std::vector<Published>& released = released_[address];
    std::vector<Published>& acquired = acquired_[rank_];
    acquired.insert(acquired.end(), released.begin(), released.end());
    if (is_write) publish(address);
}

// A store replaces what was released there, unless it `is_kept`, by an atomic that also reads.
void Order::release_atomic(uintptr_t address, int thread, bool is_kept) {
    Channel& channel = atomics_[address];
    if (is_kept && channel.published) channel.gathered = *channel.published;
    clocks_.release(number(rank_, thread), channel);
    clocks_.publish(channel);
    publish(address);
}

void Order::acquire_atomic(uintptr_t address, int thread) {
    clocks_.acquire(number(rank_, thread), atomics_[address].published);
    for (const Published& published : released_[address]) {
        // Inside the group the clocks are exact.
        if (published.run_block < group_start_) acquired_[rank_].push_back(published);
    }
}

bool Order::is_acquired(const Stamp& stamp) const {
    const std::vector<Published>& acquired = acquired_[rank_];
    return std::any_of(acquired.begin(), acquired.end(), [&](const Published& published) {
        return published.run_block == stamp.run_block && published.time >= stamp.time;
    });
}

Stamp Order::stamp(const Access& access, int thread, uint8_t bytes) const {
    const uint32_t number = this->number(rank_, thread);
    const auto lane = static_cast<uint16_t>(thread);
    if (access.slot != OWN_SLOT) {
        return {running_block(),
                access.program_counter,
                access.time,
                access.slot,
                lane,
                access.kind,
                bytes};
    }
    return {running_block(),
            access.program_counter,
            clocks_.epoch(number),
            number,
            lane,
            access.kind,
            bytes};
}

bool Order::is_before(const Stamp& before, const Stamp& now) const {
    if (!is_of_this_launch(before)) return true;
    if (is_of_this_group(before) && clocks_.knows(number(now), before.slot, before.time)) {
        return true;
    }
    return is_acquired(before);
}

bool Order::is_same_thread(const Stamp& a, const Stamp& b) const {
    return is_of_this_block(a) == is_of_this_block(b) && a.thread == b.thread;
}

bool Order::is_same_warp(const Stamp& a, const Stamp& b) const {
    return is_of_this_block(a) == is_of_this_block(b) &&
           warp_index(a.thread) == warp_index(b.thread);
}

}  // namespace kgen_cpu::observing
