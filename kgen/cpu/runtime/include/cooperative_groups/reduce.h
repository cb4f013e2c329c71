// Reductions of a tile, whose lanes all get the result.
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <class T>
struct plus {
    T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
    T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
    T operator()(T a, T b) const { return a < b ? b : a; }
};

template <unsigned SIZE, class Parent, class T, class Op>
T reduce(const thread_block_tile<SIZE, Parent>& tile, T value, Op op,
         kgen_cpu::Site site = kgen_cpu::here()) {
    for (unsigned lanes = SIZE / 2; lanes > 0; lanes /= 2) {
        value = op(value, tile.shfl_xor(value, lanes, site));
    }
    return value;
}

}  // namespace cooperative_groups
