#include "shadow.h"

#include <algorithm>

namespace kgen_cpu::observing {

void Order::begin_launch() {
    launch_start_ = segment_ + 1;
    released_.clear();
}

void Order::begin_block(unsigned block) {
    block_start_ = segment_ + 1;
    blocks_.push_back({block_start_, block});
    is_fenced_ = false;
    acquired_.clear();
    barrier_met();
}

void Order::barrier_met() {
    ++segment_;
    for (; changed_warps_; changed_warps_ &= changed_warps_ - 1) {
        auto& clocks = clocks_[__builtin_ctz(changed_warps_)];
        for (int lane = 0; lane < WARP_SIZE; ++lane) {
            std::fill_n(clocks[lane], WARP_SIZE, 0);
            clocks[lane][lane] = 1;
        }
    }
}

void Order::warp_met(int warp, uint32_t mask) {
    changed_warps_ |= 1u << warp;
    auto& clocks = clocks_[warp];
    uint32_t common[WARP_SIZE] = {};
    for (uint32_t lanes = mask; lanes; lanes &= lanes - 1) {
        const uint32_t* own = clocks[__builtin_ctz(lanes)];
        for (int i = 0; i < WARP_SIZE; ++i) common[i] = std::max(common[i], own[i]);
    }
    for (uint32_t lanes = mask; lanes; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);
        std::copy_n(common, WARP_SIZE, clocks[lane]);
        ++clocks[lane][lane];
    }
}

void Order::atomic(uintptr_t address) {
    if (!is_fenced_) return;
    std::vector<Segments>& released = released_[address];
    acquired_.insert(acquired_.end(), released.begin(), released.end());
    if (!released.empty() && released.back().last + 1 >= block_start_) {
        released.back().last = segment_;
    } else {
        released.push_back({block_start_, segment_});
    }
}

bool Order::is_acquired(uint32_t segment) const {
    return std::any_of(acquired_.begin(), acquired_.end(), [=](const Segments& segments) {
        return segments.first <= segment && segment <= segments.last;
    });
}

Stamp Order::stamp(const Access& access, int thread, uint8_t bytes) const {
    const uint32_t clock = clocks_[warp_index(thread)][lane_index(thread)][lane_index(thread)];
    return {segment_, access.program_counter, clock, static_cast<uint16_t>(thread), access.kind,
            bytes};
}

bool Order::is_before(const Stamp& before, int thread) const {
    if (before.segment == segment_) {
        if (before.thread == thread) return true;
        const int warp = warp_index(thread);
        return warp_index(before.thread) == warp &&
               clocks_[warp][lane_index(thread)][lane_index(before.thread)] >= before.clock;
    }
    return is_of_this_block(before) || !is_of_this_launch(before) || is_acquired(before.segment);
}

bool Order::is_same_thread(const Stamp& a, const Stamp& b) const {
    return is_of_this_block(a) == is_of_this_block(b) && a.thread == b.thread;
}

bool Order::is_same_warp(const Stamp& a, const Stamp& b) const {
    return is_of_this_block(a) == is_of_this_block(b) &&
           warp_index(a.thread) == warp_index(b.thread);
}

unsigned Order::block_of(const Stamp& stamp) const {
    const auto after = std::upper_bound(
        blocks_.begin(), blocks_.end(), stamp.segment,
        [](uint32_t segment, BlockStart start) { return segment < start.segment; });
    return std::prev(after)->block;
}

}  // namespace kgen_cpu::observing
