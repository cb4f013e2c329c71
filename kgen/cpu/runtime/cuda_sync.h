// Barriers, shuffles and votes.
#pragma once

#include <type_traits>

#include "cuda_types.h"
#include "runtime_calls.h"

inline void __syncthreads(kgen_cpu::Site site = kgen_cpu::here()) { kgen_cpu::barrier(site); }

inline void __syncwarp(unsigned mask = 0xffffffffu, kgen_cpu::Site site = kgen_cpu::here()) {
    kgen_cpu::warp_op({kgen_cpu::WarpOpKind::sync, warpSize}, mask, 0, 0, site);
}

namespace kgen_cpu {

template <class T>
T shuffle(WarpOp op, unsigned mask, T value, unsigned selector, Site site) {
    static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8),
                  "CUDA shuffles 4- and 8-byte numbers");
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    bits = warp_op(op, mask, bits, selector, site);
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

inline uint64_t vote(WarpOpKind kind, unsigned mask, int predicate, Site site) {
    return warp_op({kind, warpSize}, mask, predicate != 0, 0, site);
}

}  // namespace kgen_cpu

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize,
              kgen_cpu::Site site = kgen_cpu::here()) {
    return kgen_cpu::shuffle({kgen_cpu::WarpOpKind::shfl, width}, mask, value, lane, site);
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                 kgen_cpu::Site site = kgen_cpu::here()) {
    return kgen_cpu::shuffle({kgen_cpu::WarpOpKind::shfl_up, width}, mask, value, delta, site);
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                   kgen_cpu::Site site = kgen_cpu::here()) {
    return kgen_cpu::shuffle({kgen_cpu::WarpOpKind::shfl_down, width}, mask, value, delta, site);
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize,
                  kgen_cpu::Site site = kgen_cpu::here()) {
    return kgen_cpu::shuffle({kgen_cpu::WarpOpKind::shfl_xor, width}, mask, value, lane_mask, site);
}

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              kgen_cpu::Site site = kgen_cpu::here()) {
    return kgen_cpu::vote(kgen_cpu::WarpOpKind::ballot, mask, predicate, site);
}

inline int __any_sync(unsigned mask, int predicate, kgen_cpu::Site site = kgen_cpu::here()) {
    return kgen_cpu::vote(kgen_cpu::WarpOpKind::any, mask, predicate, site);
}

inline int __all_sync(unsigned mask, int predicate, kgen_cpu::Site site = kgen_cpu::here()) {
    return kgen_cpu::vote(kgen_cpu::WarpOpKind::all, mask, predicate, site);
}

// Which lanes have converged is the hardware's business; here all that could still come are active.
inline unsigned __activemask() { return kgen_cpu::active_lanes(); }
