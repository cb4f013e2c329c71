// The checks of CUDA's rules for threads that meet, and what is said about a thread that breaks
// them. A meeting that can never happen is reported as soon as the second party is known, so that
// the message names both; what remains is a cycle of waits, found when no thread is ready.
#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "block.h"
#include "group.h"
#include "observe.h"
#include "report.h"

namespace kgen_cpu {

namespace {

std::string text_of(Site site) { return std::string(site.file) + ":" + std::to_string(site.line); }

std::string hex(uint32_t mask) {
    char text[16];
    std::snprintf(text, sizeof text, "0x%08x", mask);
    return text;
}

std::string text_of(const Meeting& meeting) {
    return std::string(name_of(meeting.op.kind)) + " with mask " + hex(meeting.mask);
}

// The lowest of the threads, MAX_THREADS without one.
template <class Waiters>
int first_of(const Waiters& waiters) {
    int first = MAX_THREADS;
    for (const auto& waiter : waiters) first = std::min(first, waiter.thread);
    return first;
}

}  // namespace

void Block::fault(Site site, int thread, const char* format, ...) {
    char message[768];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    write_report({launch_->name.c_str(), index_, thread, site, nullptr, message});
    abandon();
}

void Block::fault_at(const void* program_counter, const std::string& message) {
    write_report({launch_->name.c_str(), index_, current_, {}, program_counter, message.c_str()});
    abandon();
}

void Block::report_timeout(const void* program_counter) const {
    if (!is_running_) return;
    const char* message = "still running at the time limit";
    write_report({launch_->name.c_str(), index_, current_, {}, program_counter, message});
}

void Block::check_shared_guard() {
    if (observing::IS_ON) return;  // the write itself was seen
    if (is_faulty_ || shared_->is_guard_intact(launch_->shared_bytes)) return;
    is_faulty_ = true;
    char message[128];
    std::snprintf(message, sizeof message,
                  "wrote past the end of the %u bytes of dynamic shared memory of its launch",
                  launch_->shared_bytes);
    write_report({launch_->name.c_str(), index_, -1, {}, nullptr, message});
}

void Block::check_barrier(Site site) {
    if (returned_ > 0) {
        fault(site, current_, "__syncthreads is not reached by all %d threads: %s", thread_count(),
              whereabouts(first_returned()).c_str());
    }
    if (at_barrier_ > 0 && barrier_site_ != site) {
        fault(site, current_, "not all threads wait in the same __syncthreads: %s",
              whereabouts(first_at_barrier()).c_str());
    }
    if (const Gathering* waiting = running_warp().waiting_for(running_lane())) {
        fault_absent(*waiting, "waits in __syncthreads at " + text_of(site));
    }
}

void Block::check_return() {
    if (at_barrier_ > 0) {
        fault(barrier_site_, first_at_barrier(),
              "__syncthreads is not reached by all %d threads: thread %d has returned",
              thread_count(), current_);
    }
    if (const Gathering* waiting = running_warp().waiting_for(running_lane())) {
        fault_absent(*waiting, "has returned");
    }
}

// The running thread did what makes the lanes of `gathering` wait for ever.
void Block::fault_absent(const Gathering& gathering, const std::string& what) {
    const int waiting_lane = __builtin_ctz(gathering.arrived);
    fault(gathering.meeting.site, current_ - running_lane() + waiting_lane,
          "%s names lane %d, but thread %d %s", text_of(gathering.meeting).c_str(), running_lane(),
          current_, what.c_str());
}

void Block::check_meeting(const Meeting& meeting) {
    const Warp& warp = running_warp();
    const int lane = running_lane();
    if (!(meeting.mask >> lane & 1)) {
        fault(meeting.site, current_, "%s does not name the calling lane %d",
              text_of(meeting).c_str(), lane);
    }
    if (const uint32_t absent = meeting.mask & (~warp.alive | warp.at_barrier)) {
        const int absent_lane = __builtin_ctz(absent);
        fault(meeting.site, current_, "%s names lane %d, but %s", text_of(meeting).c_str(),
              absent_lane, whereabouts(current_ - lane + absent_lane).c_str());
    }
    const int width = meeting.op.width;
    if (width < 1 || width > WARP_SIZE || (width & (width - 1))) {
        fault(meeting.site, current_, "%s has width %d, which is not a power of two up to 32",
              text_of(meeting).c_str(), width);
    }
}

void Block::check_conflict(const Meeting& meeting) {
    const Warp& warp = running_warp();
    const int lane = running_lane();
    if (const Gathering* other = warp.conflict(lane, meeting)) {
        const int other_lane = __builtin_ctz(other->arrived & meeting.mask);
        fault(meeting.site, current_, "%s of lane %d can never meet lane %d: %s",
              text_of(meeting).c_str(), lane, other_lane,
              whereabouts(current_ - lane + other_lane).c_str());
    }
}

void Block::fault_inactive_source(const Meeting& meeting, int lane) {
    fault(meeting.site, current_ - running_lane() + lane,
          "%s reads from lane %d, which it does not name", text_of(meeting).c_str(),
          running_warp().source(meeting.op, lane));
}

std::string Block::waits(int count) const {
    std::string waits;
    for (int thread = 0; thread < thread_count() && count > 0; ++thread) {
        if (!is_alive(thread)) continue;
        waits += (waits.empty() ? "" : "; ") + whereabouts(thread);
        --count;
    }
    return waits;
}

int Block::explanation() const {
    const int thread = first_waiting();
    if (thread < 0) return 0;
    return first_of(cluster_waiters_) == thread ? 1 : 2;
}

// The thread whose wait explains most, or -1.
int Block::first_waiting() const {
    int first = MAX_THREADS;
    for (const auto& [address, barrier] : group_.mbarriers()) {
        if (barrier.owner == rank_) first = std::min(first, first_of(barrier.waiters));
    }
    if (first == MAX_THREADS) first = first_of(pollers_);
    if (first == MAX_THREADS) first = first_of(cluster_waiters_);
    return first == MAX_THREADS ? -1 : first;
}

// `others` are the waits of other blocks, each behind a semicolon.
void Block::report_deadlock(const std::string& others) const {
    const int waiting = first_waiting();
    const int thread = waiting >= 0 ? waiting : current_;
    const Gathering* own = warps_[warp_index(thread)].joined_by(lane_index(thread));
    const auto [site, wait] = outer_wait(thread);
    const Site place = site.line ? site : own ? own->meeting.site : barrier_site_;
    const std::string message =
        "deadlock, no thread can go on: " + (site.line ? "it " + wait : waits(4)) + others;
    write_report({launch_->name.c_str(), index_, thread, place, nullptr, message.c_str()});
}

std::pair<Site, std::string> Block::outer_wait(int thread) const {
    for (const auto& [address, barrier] : group_.mbarriers()) {
        if (barrier.owner != rank_) continue;
        for (const Mbarrier::Waiter& waiter : barrier.waiters) {
            if (waiter.thread != thread) continue;
            return {waiter.site, "waits for phase " + std::to_string(barrier.phase) +
                                     " of the mbarrier initialised on line " +
                                     std::to_string(barrier.site.line) + ": " + barrier.state()};
        }
    }
    for (const Waiter& waiter : cluster_waiters_) {
        if (waiter.thread == thread) return {waiter.site, "waits at the cluster's barrier"};
    }
    for (const Poller& poller : pollers_) {
        if (poller.thread != thread) continue;
        const bool is_alone = launch_->group_size() == 1 && launch_->grid > 1;
        return {poller.site, "polls " + describe_address(job_, poller.address) + ", which stays " +
                                 std::to_string(poller.value) +
                                 (is_alone ? ": no other block of this launch need run now" : "")};
    }
    return {};
}

std::string Block::whereabouts(int thread) const {
    std::string name = "thread " + std::to_string(thread);
    if (launch_->group_size() > 1) name += " of block " + std::to_string(index_);
    if (thread >= thread_count()) {
        return "the block has only " + std::to_string(thread_count()) + " threads";
    }
    const Warp& warp = warps_[warp_index(thread)];
    const int lane = lane_index(thread);
    if (!(warp.alive >> lane & 1)) return name + " has returned";
    if (warp.at_barrier >> lane & 1) {
        return name + " waits in __syncthreads at " + text_of(barrier_site_);
    }
    if (const Gathering* gathering = warp.joined_by(lane)) {
        return name + " waits in " + text_of(gathering->meeting) + " at " +
               text_of(gathering->meeting.site);
    }
    const auto [site, wait] = outer_wait(thread);
    return name + (site.line ? " " + wait + ", at " + text_of(site) : " runs");
}

int Block::first_at_barrier() const {
    int warp = 0;
    while (!warps_[warp].at_barrier) ++warp;
    return warp * WARP_SIZE + __builtin_ctz(warps_[warp].at_barrier);
}

int Block::first_returned() const {
    int warp = 0;
    while (warps_[warp].alive == ~0u) ++warp;
    return warp * WARP_SIZE + __builtin_ctz(~warps_[warp].alive);
}

void require_aligned(const volatile void* address, unsigned alignment, Site site) {
    if (reinterpret_cast<uintptr_t>(address) % alignment == 0) return;
    Block& block = *Block::current();
    block.fault(site, block.thread(), "misaligned access: %s is not a multiple of %u bytes",
                describe_address(block.job(), address).c_str(), alignment);
}

}  // namespace kgen_cpu
