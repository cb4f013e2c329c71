#include "clocks.h"

#include <algorithm>

namespace kgen_cpu::observing {

void set_time(Clock& clock, uint32_t slot, uint32_t time) {
    if (slot >= clock.size()) clock.resize(slot + 1);
    clock[slot] = time;
}

void join(Clock& clock, const Clock& other) {
    if (clock.size() < other.size()) clock.resize(other.size());
    for (size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

void Clocks::reset(uint32_t threads) {
    slots_ = threads;
    threads_.assign(threads, {std::make_shared<const Clock>(), next_time(), nullptr});
}

void Clocks::meet(const std::vector<uint32_t>& threads) {
    auto common = std::make_shared<Clock>(*threads_[threads[0]].known);
    const Clock* joined = threads_[threads[0]].known.get();
    for (const uint32_t thread : threads) {
        const Clock* known = threads_[thread].known.get();
        if (known != joined) join(*common, *known);
        joined = known;
    }
    for (const uint32_t thread : threads) set_time(*common, thread, threads_[thread].epoch);
    const uint32_t time = next_time();
    for (const uint32_t thread : threads) {
        threads_[thread].known = common;
        threads_[thread].epoch = time;
    }
}

SharedClock Clocks::snapshot(uint32_t thread) {
    auto clock = std::make_shared<Clock>(*threads_[thread].known);
    set_time(*clock, thread, threads_[thread].epoch);
    threads_[thread].epoch = next_time();
    return clock;
}

void Clocks::release(uint32_t thread, Channel& channel) {
    join(channel.gathered, *threads_[thread].known);
    set_time(channel.gathered, thread, threads_[thread].epoch);
    threads_[thread].epoch = next_time();
}

void Clocks::publish(Channel& channel) {
    channel.published = std::make_shared<const Clock>(std::move(channel.gathered));
    channel.gathered = {};
}

void Clocks::acquire(uint32_t thread, const SharedClock& clock) {
    SharedClock& known = threads_[thread].known;
    if (!clock || clock == known) return;
    bool is_all = known->size() <= clock->size();
    for (size_t i = 0; is_all && i < known->size(); ++i) is_all = (*known)[i] <= (*clock)[i];
    if (is_all) {
        known = clock;
        return;
    }
    auto joined = std::make_shared<Clock>(*known);
    join(*joined, *clock);
    known = joined;
}

void Clocks::learn(uint32_t thread, uint32_t slot, uint32_t time) {
    auto known = std::make_shared<Clock>(*threads_[thread].known);
    set_time(*known, slot, std::max(time, time_of(*known, slot)));
    threads_[thread].known = known;
}

void Clocks::fence(uint32_t thread) { threads_[thread].fenced = snapshot(thread); }

}  // namespace kgen_cpu::observing
