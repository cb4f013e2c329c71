// What a kernel calls that was compiled with -fsanitize=thread: a function in front of every access
// of memory that others may see. The compiler's own runtime is not linked; these are ours.
#include "access.h"
#include "block.h"
#include "observer.h"

namespace {

using namespace kgen_cpu;
using namespace kgen_cpu::observing;

// The return address lies behind the call; one byte before it is inside.
#define KGEN_CPU_CALLER \
    static_cast<uint32_t>(reinterpret_cast<uintptr_t>(__builtin_return_address(0)) - 1)

inline void observe(AccessKind kind, unsigned bytes, const volatile void* address,
                    uint32_t program_counter) {
    const Block* block = Block::current();
    if (!block || !block->is_running()) return;  // initialisers that run before any kernel
    observer->observe(
        {kind, static_cast<uint8_t>(bytes), program_counter, reinterpret_cast<uintptr_t>(address)},
        block->thread());
}

// Copies of larger objects; the hardware moves at most 16 bytes a lane and instruction.
void observe_range(AccessKind kind, char* address, size_t bytes, uint32_t program_counter) {
    while (bytes) {
        unsigned part = 16;
        while (part > bytes) part /= 2;
        observe(kind, part, address, program_counter);
        address += part;
        bytes -= part;
    }
}

}  // namespace

#define KGEN_CPU_HOOKS(BYTES)                                        \
    void __tsan_read##BYTES(void* address) {                         \
        observe(AccessKind::load, BYTES, address, KGEN_CPU_CALLER);  \
    }                                                                \
    void __tsan_write##BYTES(void* address) {                        \
        observe(AccessKind::store, BYTES, address, KGEN_CPU_CALLER); \
    }                                                                \
    void __tsan_unaligned_read##BYTES(void* address) {               \
        observe(AccessKind::load, BYTES, address, KGEN_CPU_CALLER);  \
    }                                                                \
    void __tsan_unaligned_write##BYTES(void* address) {              \
        observe(AccessKind::store, BYTES, address, KGEN_CPU_CALLER); \
    }

// cuda_memory.h makes an atomic from a load and a compare-and-swap, which succeeds at once here:
// there is one worker. So the swap stands for the atomic.
#define KGEN_CPU_ATOMIC_HOOKS(BITS, TYPE)                                                       \
    TYPE __tsan_atomic##BITS##_load(const volatile TYPE* address, int order) {                  \
        return __atomic_load_n(address, order);                                                 \
    }                                                                                           \
    int __tsan_atomic##BITS##_compare_exchange_weak(volatile TYPE* address, TYPE* expected,     \
                                                    TYPE desired, int, int) {                   \
        observe(AccessKind::atomic, sizeof(TYPE), address, KGEN_CPU_CALLER);                    \
        return __atomic_compare_exchange_n(address, expected, desired, false, __ATOMIC_RELAXED, \
                                           __ATOMIC_RELAXED);                                   \
    }

// cuda/atomic reports its accesses itself.
#define KGEN_CPU_SILENT_HOOKS(BITS, TYPE)                                           \
    void __tsan_atomic##BITS##_store(volatile TYPE* address, TYPE value, int) {     \
        __atomic_store_n(address, value, __ATOMIC_RELAXED);                         \
    }                                                                               \
    TYPE __tsan_atomic##BITS##_fetch_add(volatile TYPE* address, TYPE value, int) { \
        return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);                \
    }

#define KGEN_CPU_WRAP(NAME, TYPE)                                      \
    TYPE __real_##NAME(TYPE x);                                        \
    TYPE __wrap_##NAME(TYPE x) {                                       \
        observe(AccessKind::exponential, 0, nullptr, KGEN_CPU_CALLER); \
        return __real_##NAME(x);                                       \
    }

extern "C" {
KGEN_CPU_HOOKS(1)
KGEN_CPU_HOOKS(2)
KGEN_CPU_HOOKS(4)
KGEN_CPU_HOOKS(8)
KGEN_CPU_HOOKS(16)
KGEN_CPU_ATOMIC_HOOKS(32, uint32_t)
KGEN_CPU_ATOMIC_HOOKS(64, uint64_t)
KGEN_CPU_SILENT_HOOKS(32, uint32_t)
KGEN_CPU_SILENT_HOOKS(64, uint64_t)

// The linker redirects the kernel's calls of them (--wrap).
KGEN_CPU_WRAP(expf, float)
KGEN_CPU_WRAP(exp2f, float)
KGEN_CPU_WRAP(exp, double)
KGEN_CPU_WRAP(exp2, double)

void __tsan_read_range(void* address, size_t bytes) {
    observe_range(AccessKind::load, static_cast<char*>(address), bytes, KGEN_CPU_CALLER);
}
void __tsan_write_range(void* address, size_t bytes) {
    observe_range(AccessKind::store, static_cast<char*>(address), bytes, KGEN_CPU_CALLER);
}

void __tsan_atomic_thread_fence(int) {
    const Block* block = Block::current();
    if (block && block->is_running()) observer->fence();
}

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
}

#undef KGEN_CPU_CALLER
#undef KGEN_CPU_HOOKS
#undef KGEN_CPU_ATOMIC_HOOKS
#undef KGEN_CPU_SILENT_HOOKS
#undef KGEN_CPU_WRAP
