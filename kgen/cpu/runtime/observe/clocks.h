// Vector clocks: what each thread of a group knows of the others.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace kgen_cpu::observing {

// The time until which each slot's accesses are known; 0 for slots behind the end. A slot is a
// thread, or what works beside a thread: its asynchronous copies, the messages for an mbarrier.
using Clock = std::vector<uint32_t>;
using SharedClock = std::shared_ptr<const Clock>;

inline uint32_t time_of(const Clock& clock, uint32_t slot) {
    return slot < clock.size() ? clock[slot] : 0;
}
void set_time(Clock& clock, uint32_t slot, uint32_t time);
// Makes `clock` know what `other` knows.
void join(Clock& clock, const Clock& other);

// Where threads meet: an mbarrier, a cluster's barrier, an atomic. What is released gathers until
// the meeting, and is then what can be acquired.
struct Channel {
    Clock gathered;
    SharedClock published;
};

// Threads whose clocks are equal share one.
class Clocks {
  public:
    void reset(uint32_t threads);

    // All of the threads know what each of them knows.
    void meet(const std::vector<uint32_t>& threads);
    void release(uint32_t thread, Channel& channel);
    // What the thread knows and has done; what it does next is not part of it.
    SharedClock snapshot(uint32_t thread);
    void publish(Channel& channel);
    void acquire(uint32_t thread, const SharedClock& clock);
    // The thread knows what the slot did until `time`.
    void learn(uint32_t thread, uint32_t slot, uint32_t time);
    void fence(uint32_t thread);

    // A new slot, and the time of what happens now in one.
    uint32_t new_slot() { return slots_++; }
    uint32_t next_time() { return ++time_; }
    uint32_t time() const { return time_; }
    uint32_t epoch(uint32_t thread) const { return threads_[thread].epoch; }
    bool knows(uint32_t thread, uint32_t slot, uint32_t time) const {
        return slot == thread || time_of(*threads_[thread].known, slot) >= time;
    }
    // True when the slot's access came before the last proxy fence of the thread.
    bool is_fenced(uint32_t thread, uint32_t slot, uint32_t time) const {
        return threads_[thread].fenced && time_of(*threads_[thread].fenced, slot) >= time;
    }

  private:
    struct Thread {
        SharedClock known;
        uint32_t epoch;  // the time of its accesses until it next releases something
        SharedClock fenced;
    };

    std::vector<Thread> threads_;
    uint32_t slots_ = 0;
    uint32_t time_ = 0;  // goes on through the whole run
};

}  // namespace kgen_cpu::observing
