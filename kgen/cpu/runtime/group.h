// The blocks that run at the same time: those of a cluster, all of a co-resident grid, or a single
// one. Each of several has an OS thread, whose thread-local storage is its shared memory; one of
// them runs at a time, and hands the turn on when none of its threads can go on. So a run is the
// same every time.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "block.h"
#include "mbarrier.h"
#include "report.h"
#include "shared_memory.h"

namespace kgen_cpu {

// Starts an OS thread; without one to be had the process ends, as for other trouble of the machine.
template <class Work>
std::thread start_thread(Work work) {
    try {
        return std::thread(work);
    } catch (const std::system_error& error) {
        end_without_thread(error.code().value());
    }
}

// A semaphore: C++17 has none.
class Signal {
  public:
    Signal() { sem_init(&semaphore_, 0, 0); }
    ~Signal() { sem_destroy(&semaphore_); }
    Signal(const Signal&) = delete;
    Signal& operator=(const Signal&) = delete;
    void send() { sem_post(&semaphore_); }
    void wait() {
        while (sem_wait(&semaphore_) != 0) {
        }
    }

  private:
    sem_t semaphore_;
};

// The barrier of a cluster's threads, of which those that returned count as arrived.
struct ClusterBarrier {
    int alive = 0;
    int arrived = 0;
    unsigned phase = 1;
};

class Group {
  public:
    // `size` is the most blocks that a launch of the job runs at once.
    Group(const Job& job, unsigned size);

    // Takes groups of the launch's blocks until none is left or one has a fault.
    void run(const Launch& launch, std::atomic<uint64_t>& next_block);
    bool is_faulty() const { return is_faulty_; }
    Block& block(int rank) { return *members_[rank]->block; }
    const Block& block(int rank) const { return *members_[rank]->block; }
    int size() const { return size_; }
    const SharedMemory& shared(int rank) const { return *members_[rank]->shared; }
    int most_blocks() const { return static_cast<int>(members_.size()); }

    // For the running block. Gives the turn to another one, and returns when this one has it back;
    // false when the group has met a fault.
    bool pass_turn(int rank);
    bool has_returned(int rank) const { return members_[rank]->state == State::returned; }
    // The block of this one's cluster in whose shared memory the address lies, or -1.
    int owner(const volatile void* address, int rank) const;
    const Launch& launch() const { return *launch_; }
    int cluster_size() const { return static_cast<int>(launch_->cluster_size); }
    int first_of_cluster(int rank) const { return rank - rank % cluster_size(); }
    ClusterBarrier& barrier_of(int rank) { return barriers_[rank / cluster_size()]; }
    Mbarriers& mbarriers() { return mbarriers_; }
    // Lets the cluster's threads go on if all have arrived.
    void check_cluster_barrier(int rank);
    // Somebody made progress: what threads poll may still change.
    void progressed() { idle_rounds_ = 0; }

  private:
    enum class State { fresh, running, returned };
    struct Member {
        std::unique_ptr<Block> block;
        std::optional<SharedMemory> shared;
        State state = State::fresh;
        Signal turn;
    };

    void run_blocks(unsigned first);
    void prepare(unsigned first);
    void serve(int rank);
    void leave(int rank);
    int first_member();
    int next_member(int rank);
    int next_able(int rank) const;
    int first_running() const;
    void report_deadlock();

    const Job& job_;
    const Launch* launch_ = nullptr;
    int size_ = 1;
    std::vector<std::unique_ptr<Member>> members_;
    std::vector<ClusterBarrier> barriers_;
    Mbarriers mbarriers_;
    uint64_t random_state_ = 0;
    int idle_rounds_ = 0;
    bool is_faulty_ = false;
    bool is_over_ = false;
    Signal found_, all_returned_;
};

}  // namespace kgen_cpu
