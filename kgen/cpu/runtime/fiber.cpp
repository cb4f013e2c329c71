#include "fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "report.h"

namespace kgen_cpu {

namespace {
const size_t GUARD_BYTES = static_cast<size_t>(sysconf(_SC_PAGESIZE));
constexpr size_t LINE_BYTES = 64;
constexpr size_t LINES_PER_PAGE = 64;
// About what a kernel keeps hot; odd, so that in time all lines of a page get used.
constexpr size_t LINES_APART = 11;
// Each guard page splits a mapping in two, and systems have some 65000 of these for a process. What
// a co-resident grid has beyond that many threads does without.
constexpr int MAX_GUARDED = 24 * 1024;
std::atomic<int> guarded{0};
}  // namespace

Fiber::Fiber(int number) {
    void* memory = mmap(nullptr, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const bool is_guarded = guarded++ < MAX_GUARDED;
    if (memory == MAP_FAILED || (is_guarded && mprotect(memory, GUARD_BYTES, PROT_NONE) != 0)) {
        end_without_memory(GUARD_BYTES + STACK_BYTES, "the stack of a CUDA thread");
    }
    stack_ = static_cast<char*>(memory);
    usable_ = STACK_BYTES - number * LINES_APART % LINES_PER_PAGE * LINE_BYTES;
}

Fiber::~Fiber() {
    if (stack_) munmap(stack_, GUARD_BYTES + STACK_BYTES);
}

bool Fiber::holds(const void* address) const {
    const char* byte = static_cast<const char*>(address);
    return stack_ && byte >= stack_ && byte < stack_ + GUARD_BYTES + STACK_BYTES;
}

bool Fiber::overflowed_at(const void* address) const {
    const char* byte = static_cast<const char*>(address);
    return stack_ && byte >= stack_ && byte < stack_ + GUARD_BYTES;
}

#ifndef KGEN_CPU_UCONTEXT

// Pushes what the ABI makes a callee save, stores the stack pointer in *save, and pops from `load`.
extern "C" void kgen_cpu_switch(void** save, void* load);

#if defined(__x86_64__)
asm(R"(
    .text
    .globl kgen_cpu_switch
    .type kgen_cpu_switch, @function
kgen_cpu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size kgen_cpu_switch, .-kgen_cpu_switch
    .section .note.GNU-stack,"",@progbits
    .text
)");
constexpr size_t SAVED_BYTES = 6 * 8 + 16;  // registers, return address, a null frame's address
constexpr size_t ENTRY_OFFSET = 6 * 8;      // where `ret` finds the entry function
#else
asm(R"(
    .text
    .globl kgen_cpu_switch
    .type kgen_cpu_switch, %function
kgen_cpu_switch:
    stp x19, x20, [sp, #-160]!
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    ldp x19, x20, [sp], #160
    ret
    .size kgen_cpu_switch, .-kgen_cpu_switch
    .section .note.GNU-stack,"",%progbits
    .text
)");
constexpr size_t SAVED_BYTES = 160;
constexpr size_t ENTRY_OFFSET = 88;  // x30, the register that `ret` jumps to
#endif

void Fiber::restart(void (*entry)()) {
    char* frame = stack_ + GUARD_BYTES + usable_ - SAVED_BYTES;  // a multiple of 16
    std::memset(frame, 0, SAVED_BYTES);
    std::memcpy(frame + ENTRY_OFFSET, &entry, sizeof entry);
    stack_pointer_ = frame;
}

void Fiber::swap(Fiber& from, Fiber& to) {
    kgen_cpu_switch(&from.stack_pointer_, to.stack_pointer_);
}

#else

void Fiber::restart(void (*entry)()) {
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack_ + GUARD_BYTES;
    context_.uc_stack.ss_size = usable_;
    makecontext(&context_, entry, 0);
}

void Fiber::swap(Fiber& from, Fiber& to) { swapcontext(&from.context_, &to.context_); }

#endif

}  // namespace kgen_cpu
