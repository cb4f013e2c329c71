// Takes every access of a run: groups it for the counts, and checks it against the shadow.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "checker.h"
#include "group_calls.h"
#include "memory.h"
#include "warp_log.h"

namespace kgen_cpu {
class Group;
}

namespace kgen_cpu::observing {

// All but the first two functions are about the running thread.
class Observer {
  public:
    explicit Observer(const Job& job) : memory_(job), checker_(memory_) {}

    void begin_launch(const Launch& launch);
    void begin_group(const Group& group);
    void thread_returned(int thread);
    void barrier_met();
    void warp_met(int warp, const Meeting& meeting, uint32_t selector);
    void end_launch();
    void end_job() { checker_.end_job(); }
    void end_faulty_job() { checker_.write_findings(); }

    // An access that the compiler's instrumentation reports.
    void observe(const Access& access, int thread);
    void fence();

    // What the runtime reports (asynchronous.cpp).
    void cluster_arrived(bool is_relaxed);
    void mbarrier_init_fenced();
    void cluster_met();
    void cluster_waited();
    void use_mbarrier(const uint64_t* barrier, AccessKind kind, Site site);
    void mbarrier_arrived(const uint64_t* barrier);
    void mbarrier_met(const uint64_t* barrier);
    void mbarrier_waited(const uint64_t* barrier);
    uint32_t message_sent(const Message& message, const uint64_t* barrier);
    void message_came(const Message& message, const uint64_t* barrier);
    uint32_t pipeline_begins(const Copy& copy);
    uint32_t bulk_store_begins(const Copy& copy);
    // The running thread has waited for what its pipeline or its bulk stores did until `time`.
    enum class Beside { pipeline, bulk_stores };
    void waited(Beside beside, uint32_t time);
    void bulk_store_written(const Copy& copy);
    void proxy_fence();
    void atomic_accessed(const volatile void* address, unsigned bytes, AtomicAccess how, Site site);

  private:
    struct Warps {
        WarpLog logs[MAX_WARPS];
        uint32_t alive[MAX_WARPS] = {};
    };
    int warps() const { return static_cast<int>((launch_->block + WARP_SIZE - 1) / WARP_SIZE); }
    void enter();
    Warps& running() { return warps_[rank_]; }
    void log(const Access& access, int thread, bool is_shared);
    // Checks an access, in parts of at most 16 bytes; counts it as one of the thread's if asked to.
    void access(Access access, const volatile void* address, size_t bytes, bool is_counted);
    // Counts a bulk copy as what a warp would do that copies 16 bytes a lane.
    // What an asynchronous copy touches was written before a proxy fence, if by threads.
    void require_fenced(AccessKind kind, uint32_t counter, const void* address, size_t bytes);
    void count_bulk(AccessKind kind, bool is_shared, const void* address, size_t bytes);
    uint32_t number() const;
    uint32_t slot_of(Beside beside);
    struct Phases {
        uint32_t slot;  // of its messages
        Channel channel;
        // What the senders had done, by the times of the messages on their way.
        std::map<uint32_t, SharedClock> sent;
    };
    Phases& phases(const uint64_t* barrier);

    Memory memory_;
    Checker checker_;
    InstructionNumbers instruction_number_;
    std::vector<Warps> warps_;  // by rank
    Counts counts_;
    const Launch* launch_ = nullptr;
    const Group* group_ = nullptr;
    int rank_ = 0;  // of the running block

    std::map<const uint64_t*, Phases> phases_;
    std::vector<Channel> clusters_;
    // What threads had done before a fence, which their next relaxed arrival releases.
    std::map<uint32_t, SharedClock> fenced_;
    std::map<std::pair<Beside, uint32_t>, uint32_t> slots_;
};

// The observer of the run; empty before it begins.
extern std::optional<Observer> observer;

}  // namespace kgen_cpu::observing
