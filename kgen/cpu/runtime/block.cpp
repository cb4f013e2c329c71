#include "block.h"

#include <algorithm>

#include "cuda_types.h"
#include "group.h"
#include "observe.h"

namespace kgen_cpu {

// What kernels know as constants (cuda_types.h). Aligned so that the linker leaves the gap behind
// the last shared array that it leaves between two.
alignas(SHARED_ALIGNMENT) __thread uint3 thread_index asm("threadIdx");
__thread uint3 block_index asm("blockIdx");
__thread dim3 block_size asm("blockDim");
__thread dim3 grid_size asm("gridDim");

namespace {
__thread Block* running_block;
}  // namespace

Block* Block::current() { return running_block; }

void Block::prepare(const Launch& launch, unsigned index, SharedMemory& shared) {
    shared.poison(launch.shared_bytes);  // the thread-local variables that run() sets lie in it
    shared_ = &shared;
    reset(launch, index);
}

bool Block::run() {
    running_block = this;
    const unsigned width = launch_->grid_width;
    block_index = {index_ % width, index_ / width, 0};
    block_size = {launch_->block_width, launch_->block / launch_->block_width, 1};
    grid_size = {width, launch_->grid / width, 1};

    set_running(ready_.first());
    Fiber* first = fiber_of_[current_] = take_fiber();
    is_running_ = true;
    Fiber::swap(outside_, *first);
    is_running_ = false;
    check_shared_guard();
    return !is_faulty_;
}

void Block::reset(const Launch& launch, unsigned index) {
    launch_ = &launch;
    index_ = index;
    is_faulty_ = false;
    returned_ = at_barrier_ = 0;
    ready_.reset(job_.schedule, job_.seed ^ (uint64_t{index} << 32), thread_count());
    for (int warp = 0; warp * WARP_SIZE < thread_count(); ++warp) {
        const int lanes = thread_count() - warp * WARP_SIZE;
        warps_[warp].reset(lanes >= WARP_SIZE ? ~0u : (1u << lanes) - 1);
    }
    std::fill_n(fiber_of_.begin(), thread_count(), nullptr);
    std::fill_n(arrivals_.begin(), thread_count(), 0);
    cluster_waiters_.clear();
    pollers_.clear();
    polled_.clear();
    copies_.clear();
}

// What every fiber executes: a thread's call of the kernel, and then the next thread's.
void Block::run_threads() {
    Block& block = *running_block;
    for (;;) {
        block.launch_->kernel->call(block.launch_->arguments.data());
        block.thread_returned();
    }
}

// Returns when the next thread has not started yet: it gets this stack, whose pages and cache lines
// are warm. (A kernel without barriers then runs on a single stack.)
void Block::thread_returned() {
    check_return();
    end_copies();
    observing::thread_returned(current_);
    Fiber* fiber = fiber_of_[current_];
    running_warp().alive &= ~(1u << running_lane());
    ++returned_;
    ready_.remove(current_);
    leave_cluster();
    group_.progressed();
    if (returned_ == thread_count()) check_messages();

    const int next = returned_ < thread_count() ? next_thread() : -1;
    if (next >= 0 && !fiber_of_[next]) {
        fiber_of_[next] = fiber;
        set_running(next);
        return;
    }
    idle_.push_back(fiber);  // whoever takes it restarts it: it never comes back here
    if (next >= 0) set_running(next);
    Fiber::swap(*fiber, next >= 0 ? *fiber_of_[next] : outside_);
}

// Gives the processor to the next ready thread, and returns when this one gets it back.
void Block::run_next() {
    const int next = next_thread();
    if (next == current_) return;
    Fiber* from = fiber_of_[current_];
    set_running(next);
    if (!fiber_of_[next]) fiber_of_[next] = take_fiber();
    Fiber::swap(*from, *fiber_of_[next]);
}

// Waits for the turn when no thread of the block can go on.
int Block::next_thread() {
    const int next = ready_.next(current_);
    if (next >= 0) return next;
    if (!group_.pass_turn(rank_)) abandon();
    return ready_.next(current_);
}

void Block::set_running(int thread) {
    current_ = thread;
    const auto number = static_cast<unsigned>(thread);
    const unsigned width = launch_->block_width;
    if (width == launch_->block) thread_index = {number, 0, 0};
    else thread_index = {number % width, number / width, 0};
}

// Fibers are made when the first block needs them, and kept.
Fiber* Block::take_fiber() {
    if (idle_.empty()) {
        fibers_.push_back(std::make_unique<Fiber>(static_cast<int>(fibers_.size())));
        idle_.push_back(fibers_.back().get());
    }
    Fiber* fiber = idle_.back();
    idle_.pop_back();
    fiber->restart(run_threads);
    return fiber;
}

// Leaves the block's threads as they are; a worker stops after a fault.
void Block::abandon() {
    is_faulty_ = true;
    Fiber::swap(*fiber_of_[current_], outside_);
    __builtin_unreachable();
}

bool Block::overflowed_at(const void* address) const {
    return fiber_of_[current_]->overflowed_at(address);
}

}  // namespace kgen_cpu
