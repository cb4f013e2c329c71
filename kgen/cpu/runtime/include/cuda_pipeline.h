// Asynchronous copies of single elements to shared memory, in batches of a thread.
#pragma once

#include "../group_calls.h"

inline void __pipeline_memcpy_async(void* shared, const void* global, size_t bytes,
                                    kgen_cpu::Site site = kgen_cpu::here()) {
    kgen_cpu::pipeline_copy(shared, global, bytes, site);
}
inline void __pipeline_commit() { kgen_cpu::pipeline_commit(); }
inline void __pipeline_wait_prior(size_t pending, kgen_cpu::Site site = kgen_cpu::here()) {
    kgen_cpu::pipeline_wait(pending, site);
}
