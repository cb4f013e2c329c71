#include "signals.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <utility>

#include "report.h"

namespace kgen_cpu {

namespace {

constexpr int CRASHES[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};

std::vector<const Block*> blocks_to_report;

const void* program_counter(const void* context) {
    [[maybe_unused]] const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
    return reinterpret_cast<const void*>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
    return reinterpret_cast<const void*>(machine.pc);
#else
    return nullptr;
#endif
}

std::string describe_crash(const Block& block, int signal, const siginfo_t& info) {
    if (signal == SIGSEGV || signal == SIGBUS) {
        if (block.overflowed_at(info.si_addr)) {
            return "stack overflow: a thread has " + std::to_string(Fiber::STACK_BYTES / 1024) +
                   " KB for its local variables";
        }
        const std::string access = "access to " + describe_address(block.job(), info.si_addr);
        const std::string meant = describe_meant_byte(block.job(), info.si_addr);
        if (!meant.empty())
            return "an offset overflows 32 bits: " + access + " instead of " + meant;
        return "segmentation fault: " + access +
               (is_read_only(block.job(), info.si_addr) ? ", which is read-only" : "");
    }
    if (signal == SIGFPE) return "arithmetic fault (an integer division by zero?)";
    return signal == SIGABRT ? "the kernel aborted" : "the kernel trapped";
}

// Abandons the faulty block by switching from the handler to the worker's own stack: SA_NODEFER
// keeps the signal unblocked, and the handler's stack is free again.
void handle_crash(int signal, siginfo_t* info, void* context) {
    Block* block = Block::current();
    if (!block || !block->is_running()) {  // a fault of this runtime
        ::signal(signal, SIG_DFL);
        raise(signal);
        return;
    }
    block->fault_at(program_counter(context), describe_crash(*block, signal, *info));
}

void handle_time_limit(int, siginfo_t*, void* context) {
    for (const Block* block : blocks_to_report) {
        const bool is_own = block == Block::current();
        block->report_timeout(is_own ? program_counter(context) : nullptr);
    }
    _exit(EXIT_TERMINATED);
}

void install(int signal, void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action = {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(signal, &action, nullptr);
}

}  // namespace

void install_signal_handlers(std::vector<const Block*> blocks) {
    blocks_to_report = std::move(blocks);
    for (const int signal : CRASHES) install(signal, handle_crash);
    install(SIGTERM, handle_time_limit);
}

void use_signal_stack() {
    constexpr size_t BYTES = 64 * 1024;
    stack_t stack = {};
    stack.ss_sp = new char[BYTES];  // for the life of the process
    stack.ss_size = BYTES;
    sigaltstack(&stack, nullptr);
}

}  // namespace kgen_cpu
