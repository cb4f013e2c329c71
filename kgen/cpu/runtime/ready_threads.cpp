#include "ready_threads.h"

namespace kgen_cpu {

namespace {

int lowest(uint32_t bits) { return __builtin_ctz(bits); }
int highest(uint32_t bits) { return 31 - __builtin_clz(bits); }

// Bits `bit` and above; none for 32 (a shift by 32 is undefined for 32-bit operands).
uint32_t bits_from(int bit) { return static_cast<uint32_t>(~uint64_t{0} << bit); }

}  // namespace

void ReadyThreads::reset(Schedule schedule, uint64_t seed, int threads) {
    schedule_ = schedule;
    random_state_ = seed;
    threads_ = threads;
    warps_ = 0;
    for (int warp = 0; warp < MAX_WARPS; ++warp) {
        lanes_[warp] = 0;
        const int lanes = threads - warp * WARP_SIZE;
        if (lanes > 0) add(warp, lanes >= WARP_SIZE ? ~0u : ~bits_from(lanes));
    }
}

void ReadyThreads::add(int warp, uint32_t lanes) {
    lanes_[warp] |= lanes;
    warps_ |= 1u << warp;
}

void ReadyThreads::remove(int thread) {
    const int warp = warp_index(thread);
    lanes_[warp] &= ~(1u << lane_index(thread));
    if (lanes_[warp] == 0) warps_ &= ~(1u << warp);
}

int ReadyThreads::first() {
    if (schedule_ == Schedule::reversed) return last_until(threads_ - 1);
    return from_or_wrap(schedule_ == Schedule::random ? random_thread() : 0);
}

int ReadyThreads::next(int current) {
    if (warps_ == 0) return -1;
    switch (schedule_) {
        case Schedule::in_order: return from_or_wrap(current + 1);
        case Schedule::reversed: {
            const int thread = last_until(current - 1);
            return thread >= 0 ? thread : last_until(threads_ - 1);
        }
        case Schedule::warp_greedy: {
            const uint32_t mates = lanes_[warp_index(current)];
            if (mates == 0) return from_or_wrap(current + 1);
            const uint32_t later = mates & bits_from(lane_index(current) + 1);
            return warp_index(current) * WARP_SIZE + lowest(later ? later : mates);
        }
        case Schedule::random: return from_or_wrap(random_thread());
    }
    __builtin_unreachable();
}

int ReadyThreads::from_or_wrap(int thread) const {
    const int found = first_from(thread);
    return found >= 0 ? found : first_from(0);
}

int ReadyThreads::first_from(int thread) const {
    if (thread >= MAX_THREADS) return -1;
    int warp = warp_index(thread);
    const uint32_t same_warp = lanes_[warp] & bits_from(lane_index(thread));
    if (same_warp) return warp * WARP_SIZE + lowest(same_warp);
    const uint32_t later = warps_ & bits_from(warp + 1);
    if (!later) return -1;
    warp = lowest(later);
    return warp * WARP_SIZE + lowest(lanes_[warp]);
}

int ReadyThreads::last_until(int thread) const {
    if (thread < 0) return -1;
    int warp = warp_index(thread);
    const uint32_t same_warp = lanes_[warp] & ~bits_from(lane_index(thread) + 1);
    if (same_warp) return warp * WARP_SIZE + highest(same_warp);
    const uint32_t earlier = warps_ & ~bits_from(warp);
    if (!earlier) return -1;
    warp = highest(earlier);
    return warp * WARP_SIZE + highest(lanes_[warp]);
}

int ReadyThreads::random_thread() {
    return static_cast<int>((random_number(random_state_) >> 32) * threads_ >> 32);
}

// splitmix64 (Steele, Lea, Flood 2014).
uint64_t random_number(uint64_t& state) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

}  // namespace kgen_cpu
