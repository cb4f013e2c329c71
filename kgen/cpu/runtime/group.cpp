#include "group.h"

#include "observe.h"
#include "report.h"
#include "signals.h"

namespace kgen_cpu {

namespace {

// So many times all threads that poll look again, before it is said that nothing will change.
constexpr int MAX_IDLE_ROUNDS = 256;
// Of how many further blocks a deadlock says what they wait for.
constexpr int MAX_TOLD_BLOCKS = 3;

}  // namespace

Group::Group(const Job& job, unsigned size) : job_(job) {
    for (unsigned rank = 0; rank < size; ++rank) {
        members_.push_back(std::make_unique<Member>());
        members_.back()->block = std::make_unique<Block>(job, *this, static_cast<int>(rank));
    }
}

void Group::run(const Launch& launch, std::atomic<uint64_t>& next_block) {
    use_signal_stack();
    launch_ = &launch;
    size_ = static_cast<int>(launch.group_size());
    std::vector<std::thread> threads;
    is_over_ = false;
    if (size_ == 1) {
        members_[0]->shared.emplace();
    } else {
        for (int rank = 0; rank < size_; ++rank) {
            threads.push_back(start_thread([=] { serve(rank); }));
            found_.wait();
        }
    }
    while (!is_faulty_) {
        const uint64_t first = next_block.fetch_add(static_cast<unsigned>(size_));
        if (first >= launch.grid) break;
        run_blocks(static_cast<unsigned>(first));
    }
    if (is_faulty_) next_block = launch.grid;
    is_over_ = true;
    for (int rank = 0; rank < static_cast<int>(threads.size()); ++rank) {
        members_[rank]->turn.send();
        threads[rank].join();
    }
}

void Group::run_blocks(unsigned first) {
    prepare(first);
    if (size_ == 1) {
        members_[0]->state = State::running;
        is_faulty_ = !members_[0]->block->run();
        return;
    }
    members_[first_member()]->turn.send();
    all_returned_.wait();
}

// All blocks at once, since they may access each other's shared memory as soon as one runs.
void Group::prepare(unsigned first) {
    mbarriers_.clear();
    idle_rounds_ = 0;
    random_state_ = job_.seed ^ first;
    const int threads = static_cast<int>(launch_->block);
    barriers_.assign(size_ / cluster_size(), {threads * cluster_size(), 0, 1});
    for (int rank = 0; rank < size_; ++rank) {
        Member& member = *members_[rank];
        member.state = State::fresh;
        member.block->prepare(*launch_, first + static_cast<unsigned>(rank), *member.shared);
    }
    observing::begin_group(*this);
}

// What the OS thread of a block does.
void Group::serve(int rank) {
    use_signal_stack();
    Member& member = *members_[rank];
    member.shared.emplace();
    found_.send();
    for (;;) {
        member.turn.wait();
        if (is_over_) return;
        member.state = State::running;
        const bool is_fine = member.block->run();
        member.state = State::returned;
        if (!is_fine) is_faulty_ = true;
        leave(rank);
    }
}

// After a fault the others get the turn only to leave, too; those that have not begun never do.
void Group::leave(int rank) {
    int next = is_faulty_ ? -1 : next_member(rank);
    if (!is_faulty_ && next < 0 && first_running() >= 0) report_deadlock();
    if (is_faulty_) next = first_running();
    (next >= 0 ? members_[next]->turn : all_returned_).send();
}

bool Group::pass_turn(int rank) {
    const int next = next_member(rank);
    if (next < 0) report_deadlock();
    if (next >= 0 && next != rank) {
        members_[next]->turn.send();
        members_[rank]->turn.wait();
    }
    return !is_faulty_;
}

int Group::first_member() {
    switch (job_.schedule) {
        case Schedule::reversed: return size_ - 1;
        case Schedule::random: return static_cast<int>(random_number(random_state_) % size_);
        default: return 0;
    }
}

// The block to run after `rank`, which may be the same; -1 when none can go on.
int Group::next_member(int rank) {
    const int able = next_able(job_.schedule == Schedule::random ? first_member() : rank);
    if (able >= 0) return able;
    if (++idle_rounds_ > MAX_IDLE_ROUNDS) return -1;
    for (int i = 0; i < size_; ++i) {
        if (members_[i]->state == State::running) members_[i]->block->poll_again();
    }
    return next_able(rank);
}

int Group::next_able(int rank) const {
    const int step = job_.schedule == Schedule::reversed ? size_ - 1 : 1;
    for (int i = 0; i < size_; ++i) {
        rank = (rank + step) % size_;
        const Member& member = *members_[rank];
        if (member.state == State::fresh) return rank;
        if (member.state == State::running && member.block->is_able()) return rank;
    }
    return -1;
}

int Group::first_running() const {
    for (int rank = 0; rank < size_; ++rank) {
        if (members_[rank]->state == State::running) return rank;
    }
    return -1;
}

// Names the thread whose wait explains most: first of all one that waits for a message.
void Group::report_deadlock() {
    const Block* told = nullptr;
    for (int rank = 0; rank < size_; ++rank) {
        const Member& member = *members_[rank];
        if (member.state != State::running) continue;
        const Block& block = *member.block;
        if (!told || block.explanation() > told->explanation()) told = &block;
    }
    std::string others;
    for (int rank = 0, listed = 0; rank < size_ && listed < MAX_TOLD_BLOCKS; ++rank) {
        const Member& member = *members_[rank];
        if (member.state != State::running || member.block.get() == told) continue;
        others += "; " + member.block->waits(1);
        ++listed;
    }
    told->report_deadlock(others);
    is_faulty_ = true;
}

}  // namespace kgen_cpu
