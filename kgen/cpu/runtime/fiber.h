// A fiber: a stack and a place to go on. Switching saves the callee-saved registers and changes the
// stack pointer, a few nanoseconds; a system call per switch (as swapcontext does) would cost more
// than the kernels do.
#pragma once

#include <cstddef>

// bench/speed.py asks for ucontext, to show what switching without system calls is worth.
#if !defined(KGEN_CPU_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define KGEN_CPU_UCONTEXT
#endif
#ifdef KGEN_CPU_UCONTEXT
#include <ucontext.h>
#endif

namespace kgen_cpu {

class Fiber {
  public:
    static constexpr size_t STACK_BYTES = 128 * 1024;

    // The fiber that is running already, on the OS thread's own stack.
    Fiber() = default;
    // A fiber with a stack of its own. Neighbouring numbers get different cache lines of a page for
    // their hot ends, which otherwise would all compete for the same few cache sets.
    explicit Fiber(int number);
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // The next switch to this fiber calls `entry`, which must not return. It runs on other OS
    // threads than before only if it is restarted there.
    void restart(void (*entry)());

    // True when `address` lies in the stack or the page that ends it.
    bool holds(const void* address) const;
    // True when `address` lies in the page that ends the stack.
    bool overflowed_at(const void* address) const;

    // Goes on with `to`; returns when somebody switches to `from` again.
    static void swap(Fiber& from, Fiber& to);

  private:
    char* stack_ = nullptr;
    size_t usable_ = 0;
#ifndef KGEN_CPU_UCONTEXT
    void* stack_pointer_ = nullptr;
#else
    ucontext_t context_ = {};
#endif
};

}  // namespace kgen_cpu
