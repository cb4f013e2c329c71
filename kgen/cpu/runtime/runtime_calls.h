// What a compiled kernel may ask of the runtime. The kernel's translation unit and the runtime are
// compiled apart (the runtime once, a kernel in a fraction of a second); this is all they share
// besides kernel_table.h. Being opaque to the optimiser, each call also makes it write back and
// reload shared and global memory, which is what the CUDA intrinsics promise.
#pragma once

#include <cstdint>

#include "site.h"

namespace kgen_cpu {

// Returns when every thread of the block has called it from the same line.
void barrier(Site site);

// An operation in which the lanes of a mask take part together. `width` is the segment of a
// shuffle.
enum class WarpOpKind { sync, shfl, shfl_up, shfl_down, shfl_xor, ballot, any, all };
struct WarpOp {
    WarpOpKind kind;
    int width;
};

// Returns this lane's result when all lanes of `mask` have called the same operation from the same
// line. `value` is the lane's operand or predicate, `selector` a shuffle's lane, delta or lane
// mask. (All of it fits into six registers. On the stack it would cost more than the operation
// itself.)
uint64_t warp_op(WarpOp op, uint32_t mask, uint64_t value, uint32_t selector, Site site);

// The lanes of the caller's warp that neither returned nor wait in __syncthreads.
uint32_t active_lanes();

// Faults unless `address` is a multiple of `alignment`: for accesses that the `.cu` makes through
// an intrinsic, where the compiler's own check would name a line of our header.
void require_aligned(const volatile void* address, unsigned alignment, Site site);

}  // namespace kgen_cpu
