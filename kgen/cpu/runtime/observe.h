// What the runtime tells an observer: nothing in ordinary executables, whose calls vanish. With
// KGEN_CPU_OBSERVING the files in observe/ define them; the accesses themselves come from the
// compiler's instrumentation of the kernel (observe/hooks.cpp).
#pragma once

#include "warp.h"

namespace kgen_cpu {

struct Copy;
struct Job;
struct Launch;
struct Message;

namespace observing {

#ifdef KGEN_CPU_OBSERVING

constexpr bool IS_ON = true;
void begin_job(const Job& job);
void begin_launch(const Launch& launch);
void begin_block(unsigned block);
void thread_returned(int thread);
// All threads of the block have arrived.
void barrier_met();
// All lanes of the mask have arrived; `selector` is the last one's.
void warp_met(int warp, const Meeting& meeting, uint32_t selector);
// A thread's part in the barrier of its cluster; `first` is the cluster's first block.
void cluster_arrived(unsigned block, int thread, bool is_relaxed);
void cluster_met(unsigned first);
void cluster_waited(unsigned block, int thread);
// A thread's part in an mbarrier's phase, and the end of the phase.
void mbarrier_arrived(const uint64_t* barrier, unsigned block, int thread);
void mbarrier_met(const uint64_t* barrier);
void mbarrier_waited(const uint64_t* barrier, unsigned block, int thread);
// Asynchronous copies begin, and are made: a message for an mbarrier, or a copy that the running
// thread waits for; a bulk store ends when it has read.
void message_sent(const Message& message);
void message_came(const uint64_t* barrier, const Message& message);
void copy_begins(const Copy& copy, bool is_store);
void copy_ends(const Copy& copy, bool is_store);
void proxy_fence();
void end_launch();
void end_job();
// The job ends early, by a fault.
void end_faulty_job();

#else

constexpr bool IS_ON = false;
inline void begin_job(const Job&) {}
inline void begin_launch(const Launch&) {}
inline void begin_block(unsigned) {}
inline void thread_returned(int) {}
inline void barrier_met() {}
inline void warp_met(int, const Meeting&, uint32_t) {}
inline void cluster_arrived(unsigned, int, bool) {}
inline void cluster_met(unsigned) {}
inline void cluster_waited(unsigned, int) {}
inline void mbarrier_arrived(const uint64_t*, unsigned, int) {}
inline void mbarrier_met(const uint64_t*) {}
inline void mbarrier_waited(const uint64_t*, unsigned, int) {}
inline void message_sent(const Message&) {}
inline void message_came(const uint64_t*, const Message&) {}
inline void copy_begins(const Copy&, bool) {}
inline void copy_ends(const Copy&, bool) {}
inline void proxy_fence() {}
inline void end_launch() {}
inline void end_job() {}
inline void end_faulty_job() {}

#endif

}  // namespace observing
}  // namespace kgen_cpu
