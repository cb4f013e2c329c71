// What the runtime tells an observer: nothing in ordinary executables, whose calls vanish. With
// KGEN_CPU_OBSERVING the files in observe/ define them; the accesses themselves come from the
// compiler's instrumentation of the kernel (observe/hooks.cpp).
#pragma once

#include "warp.h"

namespace kgen_cpu {

struct Job;
struct Launch;

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
inline void end_launch() {}
inline void end_job() {}
inline void end_faulty_job() {}

#endif

}  // namespace observing
}  // namespace kgen_cpu
