// mbarriers: barriers in shared memory that also count the bytes of messages. A message is kept
// until somebody waits for it, the latest moment that CUDA allows, so that who reads without
// waiting finds what was there before.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "site.h"

namespace kgen_cpu {

class Block;

// Bytes on their way to shared memory: a copy of global memory, or a value.
struct Message {
    void* to;
    const void* from;  // null: the value
    unsigned char value[16];
    uint32_t bytes;
    unsigned block;  // who sent it
    int thread;
    Site site;
    uint32_t time = 0;  // for the observer
};

struct Mbarrier {
    struct Waiter {
        int thread;
        Site site;
    };

    int owner;  // the block's rank in its group
    Site site;  // of its initialisation
    uint32_t count;
    uint32_t pending;      // arrivals that the phase still needs
    int64_t expected = 0;  // bytes of the phase
    int64_t received = 0;
    uint64_t phase = 0;
    std::deque<Message> messages;
    std::vector<Waiter> waiters;  // threads of the owner

    bool is_complete() const { return pending == 0 && received == expected; }
    // What the phase lacks, as a sentence.
    std::string state() const;
};

// Those of a group, by address.
using Mbarriers = std::map<const uint64_t*, Mbarrier>;

}  // namespace kgen_cpu
