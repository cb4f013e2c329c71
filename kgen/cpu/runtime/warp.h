// The state of one warp: which lanes live, and which have gathered for which operation.
#pragma once

#include <cstdint>

#include "ready_threads.h"
#include "runtime_calls.h"

namespace kgen_cpu {

// What all lanes of an operation must agree on.
struct Meeting {
    WarpOp op;
    uint32_t mask;
    Site site;

    bool operator==(const Meeting& other) const {
        return op.kind == other.op.kind && op.width == other.op.width && mask == other.mask &&
               site == other.site;
    }
};

// Lanes that wait for the others of their mask. Lanes of one warp may wait in several of them.
struct Gathering {
    Meeting meeting;
    uint32_t arrived;
};

class Warp {
  public:
    void reset(uint32_t lanes);

    uint32_t alive = 0;       // lanes that exist and have not returned
    uint32_t at_barrier = 0;  // lanes that wait in __syncthreads

    // Adds the lane to the gathering for `meeting`, a new one when there is none. Returns true when
    // the lane was the last one: the gathering is then over, and can be evaluated.
    bool join(int lane, const Meeting& meeting, uint64_t value, uint32_t selector);

    // Computes the results of all lanes at once: afterwards a lane may bring its next value before
    // the others have looked. Returns a lane that shuffles from a lane outside the mask, or -1.
    int evaluate(const Meeting& meeting);
    uint64_t result(int lane) const { return results_[lane]; }
    // The lane from which `lane` gets its value.
    int source(WarpOp op, int lane) const;

    // A gathering whose mask names `lane` (all of its lanes then wait for this one), or null.
    const Gathering* waiting_for(int lane) const;
    // The gathering in which `lane` waits, or null.
    const Gathering* joined_by(int lane) const;
    // A gathering that can never end now that `lane` waits for `meeting`: one of its lanes and this
    // lane wait for each other.
    const Gathering* conflict(int lane, const Meeting& meeting) const;
    bool can_conflict() const { return gathering_count_ > 1; }

  private:
    uint32_t votes(uint32_t mask) const;
    void give_all(uint64_t result);

    uint64_t values_[WARP_SIZE] = {};
    uint32_t selectors_[WARP_SIZE] = {};
    uint64_t results_[WARP_SIZE] = {};
    Gathering gatherings_[WARP_SIZE] = {};
    int gathering_count_ = 0;
};

// The CUDA name of the operation.
const char* name_of(WarpOpKind kind);

}  // namespace kgen_cpu
