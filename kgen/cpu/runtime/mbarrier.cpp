#include "mbarrier.h"

#include <cstring>

#include "group.h"
#include "group_calls.h"
#include "observe.h"

namespace kgen_cpu {

namespace {

// What an initialised mbarrier holds here; other contents were written over it.
constexpr uint64_t MARK = 0x6b67656e6d626172;
constexpr uint32_t MAX_COUNT = (1u << 20) - 1;

}  // namespace

std::string Mbarrier::state() const {
    int64_t come = received;
    for (const Message& message : messages) come += message.bytes;
    return std::to_string(count - pending) + " of " + std::to_string(count) + " arrivals and " +
           std::to_string(come) + " of " + std::to_string(expected) + " bytes have come";
}

void Block::mbarrier_init(uint64_t* address, uint32_t count, Site site) {
    require_aligned(address, sizeof *address, site);
    if (group_.owner(address, rank_) != rank_)
        fault(site, current_, "an mbarrier must lie in the shared memory of the block");
    if (count < 1 || count > MAX_COUNT)
        fault(site, current_, "an mbarrier of %u arrivals: there are 1 to %u", count, MAX_COUNT);
    const auto [found, is_new] =
        group_.mbarriers().try_emplace(address, Mbarrier{rank_, site, count, count});
    if (!is_new) {
        fault(site, current_, "initialises an mbarrier that is in use since line %d",
              found->second.site.line);
    }
    observing::mbarrier_initialised(address, site);
    *address = MARK;
}

// The running thread wants to `act` on the mbarrier at the address.
Mbarrier& Block::mbarrier_at(uint64_t* address, Reach reach, const char* act, Site site) {
    require_aligned(address, sizeof *address, site);
    const int owner = group_.owner(address, rank_);
    if (owner < 0) {
        fault(site, current_, "%s an mbarrier outside the cluster's shared memory", act);
    }
    if (owner != rank_ && reach == Reach::block) {
        fault(site, current_, "%s an mbarrier of block %u with an instruction for the own block's",
              act, group_.block(owner).index_);
    }
    require_present(owner, act, site);
    const auto found = group_.mbarriers().find(address);
    if (found == group_.mbarriers().end())
        fault(site, current_, "%s an mbarrier that nobody has initialised", act);
    if (*address != MARK) {
        fault(site, current_, "%s an mbarrier (initialised on line %d) that was written over", act,
              found->second.site.line);
    }
    observing::mbarrier_used(address, site);
    return found->second;
}

void Block::mbarrier_arrive(uint64_t* address, uint32_t arrivals, uint32_t expected, Reach reach,
                            Site site) {
    Mbarrier& barrier = mbarrier_at(address, reach, "arrives at", site);
    deliver(address, barrier);
    if (barrier.pending < arrivals) {
        fault(site, current_,
              "arrives at an mbarrier (initialised on line %d) whose phase %llu has "
              "all of its %u arrivals",
              barrier.site.line, static_cast<unsigned long long>(barrier.phase), barrier.count);
    }
    observing::mbarrier_arrived(address);
    barrier.pending -= arrivals;
    barrier.expected += expected;
    if (barrier.is_complete()) end_phase(address, barrier);
    else if (!barrier.waiters.empty()) deliver(address, barrier);
}

void Block::mbarrier_wait(uint64_t* address, uint32_t parity, Site site) {
    Mbarrier& barrier = mbarrier_at(address, Reach::block, "waits on", site);
    if (parity > 1) fault(site, current_, "an mbarrier's phase has parity 0 or 1, not %u", parity);
    if (barrier.phase % 2 == parity) {
        const uint64_t phase = barrier.phase;
        deliver(address, barrier);
        if (barrier.phase == phase) {
            barrier.waiters.push_back({current_, site});
            ready_.remove(current_);
            run_next();
        }
    }
    observing::mbarrier_waited(address);
}

// Lets messages come until the phase is complete; before all have arrived it cannot be.
void Block::deliver(const uint64_t* address, Mbarrier& barrier) {
    while (barrier.pending == 0 && !barrier.messages.empty()) {
        const Message message = barrier.messages.front();
        barrier.messages.pop_front();
        observing::message_came(message, address);
        std::memcpy(message.to, message.from ? message.from : message.value, message.bytes);
        barrier.received += message.bytes;
        if (barrier.is_complete()) return end_phase(address, barrier);
    }
}

void Block::end_phase(const uint64_t* address, Mbarrier& barrier) {
    ++barrier.phase;
    barrier.pending = barrier.count;
    barrier.received = barrier.expected = 0;
    observing::mbarrier_met(address);
    for (const Mbarrier::Waiter& waiter : barrier.waiters) {
        group_.block(barrier.owner).wake(waiter.thread);
    }
    barrier.waiters.clear();
    group_.progressed();
}

void Block::send(const Message& message, uint64_t* address, Site site) {
    const int owner = group_.owner(message.to, rank_);
    if (owner < 0)
        fault(site, current_, "a message to an address outside the cluster's shared memory");
    require_present(owner, "sends to", site);
    Mbarrier& barrier = mbarrier_at(address, Reach::cluster, "sends to", site);
    if (barrier.owner != owner) {
        fault(site, current_, "a message to block %u that tells an mbarrier of block %u",
              group_.block(owner).index_, group_.block(barrier.owner).index_);
    }
    barrier.messages.push_back(message);
    barrier.messages.back().time = observing::message_sent(message, address);
    if (!barrier.waiters.empty()) deliver(address, barrier);
}

void Block::store_async(void* to, const void* value, uint32_t bytes, uint64_t* barrier, Site site) {
    require_aligned(to, bytes, site);
    Message message = {to, nullptr, {}, bytes, index_, current_, site};
    std::memcpy(message.value, value, bytes);
    send(message, barrier, site);
}

// What nobody waited for must not arrive after the block is gone.
void Block::check_messages() {
    for (const auto& [address, barrier] : group_.mbarriers()) {
        if (barrier.owner != rank_ || barrier.messages.empty()) continue;
        const Message& message = barrier.messages.front();
        fault(message.site, current_,
              "returns as the last of block %u while %u bytes for its shared "
              "memory, from thread %d of block %u, may be on their way: nobody waited for them",
              index_, message.bytes, message.thread, message.block);
    }
}

void mbarrier_init(uint64_t* barrier, uint32_t count, Site site) {
    Block::current()->mbarrier_init(barrier, count, site);
}
void mbarrier_arrive(uint64_t* barrier, uint32_t arrivals, uint32_t expected, Reach reach,
                     Site site) {
    Block::current()->mbarrier_arrive(barrier, arrivals, expected, reach, site);
}
void mbarrier_wait(uint64_t* barrier, uint32_t parity, Site site) {
    Block::current()->mbarrier_wait(barrier, parity, site);
}
void store_async(void* to, const void* value, uint32_t bytes, uint64_t* barrier, Site site) {
    Block::current()->store_async(to, value, bytes, barrier, site);
}

}  // namespace kgen_cpu
