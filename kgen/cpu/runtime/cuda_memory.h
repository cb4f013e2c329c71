// Atomics, fences and cached loads and stores. Blocks run on several OS threads at once, so the
// atomics are real ones; relaxed, as CUDA's are.
#pragma once

#include <type_traits>

#include "runtime_calls.h"

namespace kgen_cpu {

template <class T>
constexpr bool is_atomic_integer =
    std::is_same_v<T, int> || std::is_same_v<T, unsigned> || std::is_same_v<T, unsigned long long>;

// Replaces *address by combine(*address) and returns the old value.
template <class T, class Combine>
T atomic_update(T* address, Site site, Combine combine) {
    require_aligned(address, sizeof(T), site);
    T old;
    __atomic_load(address, &old, __ATOMIC_RELAXED);
    for (;;) {
        T desired = combine(old);
        if (__atomic_compare_exchange(address, &old, &desired, true, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
            return old;
        }
    }
}

}  // namespace kgen_cpu

// The second parameter's type is not deduced, so atomicAdd(&an_unsigned, 1) works as in CUDA.
#define KGEN_CPU_ATOMIC(NAME, IS_SUPPORTED, EXPRESSION)                                        \
    template <class T>                                                                         \
    T NAME(T* address, std::common_type_t<T> value, kgen_cpu::Site site = kgen_cpu::here()) {  \
        static_assert(IS_SUPPORTED, #NAME " does not take this type in CUDA");                 \
        return kgen_cpu::atomic_update(address, site, [=](T old) -> T { return EXPRESSION; }); \
    }

KGEN_CPU_ATOMIC(atomicAdd, (kgen_cpu::is_atomic_integer<T> || std::is_floating_point_v<T>),
                old + value)
KGEN_CPU_ATOMIC(atomicMax, kgen_cpu::is_atomic_integer<T>, old < value ? value : old)
KGEN_CPU_ATOMIC(atomicMin, kgen_cpu::is_atomic_integer<T>, value < old ? value : old)
KGEN_CPU_ATOMIC(atomicExch, (kgen_cpu::is_atomic_integer<T> || std::is_same_v<T, float>), value)

#undef KGEN_CPU_ATOMIC

template <class T>
T atomicCAS(T* address, std::common_type_t<T> compare, std::common_type_t<T> value,
            kgen_cpu::Site site = kgen_cpu::here()) {
    static_assert(kgen_cpu::is_atomic_integer<T>, "atomicCAS does not take this type in CUDA");
    return kgen_cpu::atomic_update(address, site,
                                   [=](T old) -> T { return old == compare ? value : old; });
}

inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// Cache hints do not change what is read or written.
#define KGEN_CPU_LOAD(NAME)                                            \
    template <class T>                                                 \
    T NAME(const T* address, kgen_cpu::Site site = kgen_cpu::here()) { \
        kgen_cpu::require_aligned(address, alignof(T), site);          \
        return *address;                                               \
    }

#define KGEN_CPU_STORE(NAME)                                                                     \
    template <class T>                                                                           \
    void NAME(T* address, std::common_type_t<T> value, kgen_cpu::Site site = kgen_cpu::here()) { \
        kgen_cpu::require_aligned(address, alignof(T), site);                                    \
        *address = value;                                                                        \
    }

KGEN_CPU_LOAD(__ldg)
KGEN_CPU_LOAD(__ldca)
KGEN_CPU_LOAD(__ldcg)
KGEN_CPU_LOAD(__ldcs)
KGEN_CPU_LOAD(__ldcv)
KGEN_CPU_LOAD(__ldlu)
KGEN_CPU_STORE(__stcg)
KGEN_CPU_STORE(__stcs)
KGEN_CPU_STORE(__stwb)
KGEN_CPU_STORE(__stwt)

#undef KGEN_CPU_LOAD
#undef KGEN_CPU_STORE
