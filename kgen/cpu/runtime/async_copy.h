// Copies that a thread starts and waits for later, in batches; each is made at the latest moment
// that CUDA allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "site.h"

namespace kgen_cpu {

struct Copy {
    void* to;
    const void* from;
    size_t bytes;
    Site site;
    std::vector<unsigned char> data = {};  // what a bulk store has read; empty before
    uint32_t time = 0;                     // for the observer
};

using Batch = std::vector<Copy>;

struct Batches {
    Batch open;
    std::deque<Batch> committed;

    void commit() {
        committed.push_back(std::move(open));
        open.clear();
    }
};

struct ThreadCopies {
    Batches pipeline;
    Batches bulk_stores;
};

// Those of a block, by thread.
using AsyncCopies = std::unordered_map<int, ThreadCopies>;

}  // namespace kgen_cpu
