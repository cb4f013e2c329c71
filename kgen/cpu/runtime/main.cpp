// Runs a job: the launches of a plan, one after the other, the blocks of each spread over workers.
// Workers are OS threads, not processes: `__device__` variables are then shared, as they must be.
#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "group.h"
#include "observe.h"
#include "report.h"
#include "signals.h"

namespace kgen_cpu {

namespace {

// Each works on its own share of a launch.
using Groups = std::vector<std::unique_ptr<Group>>;

// Returns false when a group met a fault: nobody starts further blocks then, but those that run go
// on, so the lowest faulty block is always among the reported ones. The calling OS thread works for
// the first group.
bool run_launch(const Launch& launch, const Groups& groups) {
    std::atomic<uint64_t> next_block{launch.skipped_blocks};
    std::vector<std::thread> others;
    for (size_t i = 1; i < groups.size(); ++i) {
        others.push_back(start_thread([&, i] { groups[i]->run(launch, next_block); }));
    }
    groups[0]->run(launch, next_block);
    for (std::thread& other : others) other.join();
    return std::none_of(groups.begin(), groups.end(),
                        [](const auto& group) { return group->is_faulty(); });
}

Groups groups_for(const Job& job) {
    unsigned size = 1;
    for (const Launch& launch : job.launches) size = std::max(size, launch.group_size());
    Groups groups;
    for (unsigned i = 0; i < job.workers; ++i) groups.push_back(std::make_unique<Group>(job, size));
    return groups;
}

std::vector<const Block*> blocks_of(const Groups& groups) {
    std::vector<const Block*> blocks;
    for (const auto& group : groups) {
        for (int rank = 0; rank < group->most_blocks(); ++rank) {
            blocks.push_back(&group->block(rank));
        }
    }
    return blocks;
}

}  // namespace

int run_job() {
    end_when_new_fails();
    const Job job = read_job(stdin);
    const Groups groups = groups_for(job);
    install_signal_handlers(blocks_of(groups));
    observing::begin_job(job);
    for (const Launch& launch : job.launches) {
        observing::begin_launch(launch);
        if (!run_launch(launch, groups)) {
            observing::end_faulty_job();
            return EXIT_FAULT;
        }
        observing::end_launch();
    }
    observing::end_job();
    return 0;
}

}  // namespace kgen_cpu

int main() { return kgen_cpu::run_job(); }
