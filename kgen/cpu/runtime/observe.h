// What the runtime tells an observer: nothing in ordinary executables, whose calls vanish. With
// KGEN_CPU_OBSERVING the files in observe/ define them; the accesses themselves come from the
// compiler's instrumentation of the kernel (observe/hooks.cpp).
#pragma once

#include "warp.h"

namespace kgen_cpu {

class Group;
struct Copy;
struct Job;
struct Launch;
struct Message;

namespace observing {

#ifdef KGEN_CPU_OBSERVING

constexpr bool IS_ON = true;
void begin_job(const Job& job);
void begin_launch(const Launch& launch);
// The blocks of the group are about to run.
void begin_group(const Group& group);
void thread_returned(int thread);
// All threads of the block have arrived.
void barrier_met();
// All lanes of the mask have arrived; `selector` is the last one's.
void warp_met(int warp, const Meeting& meeting, uint32_t selector);
// The running thread's part in the barrier of its cluster, and its end.
void cluster_arrived(bool is_relaxed);
void mbarrier_init_fenced();
void cluster_met();
void cluster_waited();
// The running thread initialises an mbarrier, or uses it in whatever way.
void mbarrier_initialised(const uint64_t* barrier, Site site);
void mbarrier_used(const uint64_t* barrier, Site site);
// Its part in a phase, and the end of the phase.
void mbarrier_arrived(const uint64_t* barrier);
void mbarrier_met(const uint64_t* barrier);
void mbarrier_waited(const uint64_t* barrier);
// Asynchronous copies begin, which returns when, and are made.
uint32_t message_sent(const Message& message, const uint64_t* barrier);
void message_came(const Message& message, const uint64_t* barrier);
uint32_t pipeline_begins(const Copy& copy);
void pipeline_ends(const Copy& copy);
uint32_t bulk_store_begins(const Copy& copy);
void bulk_store_read(const Copy& copy);
void bulk_store_written(const Copy& copy);
void proxy_fence();
void end_launch();
void end_job();
// The job ends early, by a fault.
void end_faulty_job();

#else

constexpr bool IS_ON = false;
inline void begin_job(const Job&) {}
inline void begin_launch(const Launch&) {}
inline void begin_group(const Group&) {}
inline void thread_returned(int) {}
inline void barrier_met() {}
inline void warp_met(int, const Meeting&, uint32_t) {}
inline void cluster_arrived(bool) {}
inline void mbarrier_init_fenced() {}
inline void cluster_met() {}
inline void cluster_waited() {}
inline void mbarrier_initialised(const uint64_t*, Site) {}
inline void mbarrier_used(const uint64_t*, Site) {}
inline void mbarrier_arrived(const uint64_t*) {}
inline void mbarrier_met(const uint64_t*) {}
inline void mbarrier_waited(const uint64_t*) {}
inline uint32_t message_sent(const Message&, const uint64_t*) { return 0; }
inline void message_came(const Message&, const uint64_t*) {}
inline uint32_t pipeline_begins(const Copy&) { return 0; }
inline void pipeline_ends(const Copy&) {}
inline uint32_t bulk_store_begins(const Copy&) { return 0; }
inline void bulk_store_read(const Copy&) {}
inline void bulk_store_written(const Copy&) {}
inline void proxy_fence() {}
inline void end_launch() {}
inline void end_job() {}
inline void end_faulty_job() {}

#endif

}  // namespace observing
}  // namespace kgen_cpu
