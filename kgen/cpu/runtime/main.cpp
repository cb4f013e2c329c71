// Runs a job: the launches of a plan, one after the other, the blocks of each spread over workers.
// Workers are OS threads, not processes: `__device__` variables are then shared, as they must be.
#include <algorithm>
#include <atomic>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "observe.h"
#include "report.h"
#include "signals.h"
#include "worker.h"

namespace kgen_cpu {

namespace {

using Workers = std::vector<std::unique_ptr<Worker>>;

template <class Work>
std::thread started(Work work) {
    try {
        return std::thread(work);
    } catch (const std::system_error& error) {
        end_without_thread(error.code().value());
    }
}

// Returns false when a worker met a fault. The first worker is the calling OS thread.
bool run_launch(const Launch& launch, const Workers& workers) {
    std::atomic<uint64_t> next_block{launch.skipped_blocks};
    std::vector<std::thread> others;
    for (size_t i = 1; i < workers.size(); ++i) {
        others.push_back(started([&, i] { workers[i]->run(launch, next_block); }));
    }
    workers[0]->run(launch, next_block);
    for (std::thread& other : others) other.join();
    return std::none_of(workers.begin(), workers.end(),
                        [](const auto& worker) { return worker->is_faulty(); });
}

}  // namespace

int run_job() {
    end_when_new_fails();
    const Job job = read_job(stdin);
    Workers workers;
    for (unsigned i = 0; i < job.workers; ++i) workers.push_back(std::make_unique<Worker>(job));
    std::vector<const Block*> blocks;
    for (const auto& worker : workers) blocks.push_back(&worker->block());
    install_signal_handlers(blocks);
    observing::begin_job(job);
    for (const Launch& launch : job.launches) {
        observing::begin_launch(launch);
        if (!run_launch(launch, workers)) {
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
