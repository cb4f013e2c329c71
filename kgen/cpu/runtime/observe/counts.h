// What a launch does, in the units of a GPU's counters: a warp instruction is one instruction of a
// warp, however many of its lanes take part.
#pragma once

#include <cstdint>
#include <string>

#include "access.h"
#include "warp.h"

namespace kgen_cpu::observing {

// One warp instruction that touches memory or computes an exponential.
struct Request {
    AccessKind kind;
    uint8_t bytes;
    bool is_shared;
    uint32_t lanes;  // that take part
    uintptr_t addresses[WARP_SIZE];
};

class Counts {
  public:
    void add(const Request& request);
    void add_barrier(int warps) { barriers_ += warps; }
    void add_warp_op(WarpOpKind kind);
    void add_reduction() { ++reductions_; }

    // The inside of a JSON object.
    std::string json() const;

  private:
    static constexpr int WIDTHS = 5;  // 1, 2, 4, 8 and 16 bytes

    struct Accesses {
        uint64_t loads[WIDTHS] = {};
        uint64_t stores[WIDTHS] = {};
        uint64_t bytes_loaded = 0;
        uint64_t bytes_stored = 0;
    };

    Accesses global_;
    Accesses shared_;
    uint64_t global_sectors_loaded_ = 0;
    uint64_t global_sectors_stored_ = 0;
    uint64_t shared_bank_conflicts_ = 0;
    uint64_t atomics_ = 0;
    uint64_t exponentials_ = 0;
    uint64_t thread_exponentials_ = 0;
    uint64_t shuffles_ = 0;
    uint64_t votes_ = 0;
    uint64_t warp_syncs_ = 0;
    uint64_t barriers_ = 0;
    uint64_t reductions_ = 0;

    static std::string json_of(const char* space, const Accesses& accesses);
};

}  // namespace kgen_cpu::observing
