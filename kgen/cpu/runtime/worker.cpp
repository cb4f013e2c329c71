#include "worker.h"

#include "signals.h"

namespace kgen_cpu {

void Worker::run(const Launch& launch, std::atomic<uint64_t>& next_block) {
    use_signal_stack();
    SharedMemory shared;
    while (!is_faulty_) {
        const uint64_t index = next_block++;
        if (index >= launch.grid) return;
        is_faulty_ = !block_.run(launch, static_cast<unsigned>(index), shared);
    }
    next_block = launch.grid;
}

}  // namespace kgen_cpu
