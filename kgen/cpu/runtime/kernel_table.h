// The kernels of one `.cu`, by name, callable without knowing their parameter lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace kgen_cpu {

// An argument as the host passes it: a pointer's or an integer's bytes.
using Slot = uint64_t;

struct Kernel {
    const char* name;
    const char* parameters;  // one letter each: 'p' pointer, 'i' number, '?' anything else
    void (*call)(const Slot* arguments);
};

// Defined by the wrapper that includes the `.cu`.
extern const Kernel kernels[];
extern const int kernel_count;

// The start of the calling OS thread's dynamic shared memory, or null when the `.cu` declares none.
unsigned char* dynamic_shared();

// The opt-in limit of sm_90, the largest of any architecture: a launch's own size is checked by
// guard bytes behind it, so that one binary serves every launch.
constexpr size_t MAX_DYNAMIC_SHARED = 227 * 1024;
constexpr size_t DYNAMIC_SHARED_GUARD = 1024;
constexpr size_t DYNAMIC_SHARED_BYTES = MAX_DYNAMIC_SHARED + DYNAMIC_SHARED_GUARD;

#ifdef KGEN_CPU_OBSERVING
constexpr size_t SHARED_ALIGNMENT = 4096;
#else
constexpr size_t SHARED_ALIGNMENT = 16;
#endif

template <class T>
constexpr char parameter_letter() {
    if (std::is_pointer_v<T>) return 'p';
    return std::is_arithmetic_v<T> && sizeof(T) <= sizeof(Slot) ? 'i' : '?';
}

template <class T>
T unpack(Slot slot) {
    static_assert(sizeof(T) <= sizeof(Slot),
                  "kernel arguments larger than 8 bytes are unsupported");
    T value;
    std::memcpy(&value, &slot, sizeof value);  // little-endian: an int lies in the low half
    return value;
}

template <class... Parameters>
struct KernelType {
    static constexpr char letters[] = {parameter_letter<Parameters>()..., '\0'};

    template <void (*kernel)(Parameters...)>
    static void call(const Slot* arguments) {
        call_with<kernel>(arguments, std::index_sequence_for<Parameters...>{});
    }
    template <void (*kernel)(Parameters...), size_t... I>
    static void call_with(const Slot* arguments, std::index_sequence<I...>) {
        kernel(unpack<Parameters>(arguments[I])...);
    }
};

template <class... Parameters>
KernelType<Parameters...> kernel_type(void (*)(Parameters...));

}  // namespace kgen_cpu

#define KGEN_CPU_KERNEL(NAME)                                \
    {#NAME, decltype(kgen_cpu::kernel_type(&NAME))::letters, \
     &decltype(kgen_cpu::kernel_type(&NAME))::call<&NAME>}

// The wrapper uses one of these: the first when the `.cu` declares no `extern __shared__` array, or
// the second, and the third for the name of each such array. On a GPU all of them start at the same
// address; here they are symbols of the same object, whatever types the `.cu` gives them.
#define KGEN_CPU_NO_DYNAMIC_SHARED \
    unsigned char* kgen_cpu::dynamic_shared() { return nullptr; }

#define KGEN_CPU_DYNAMIC_SHARED                                                           \
    extern "C" {                                                                          \
    __attribute__((used, aligned(kgen_cpu::SHARED_ALIGNMENT))) thread_local unsigned char \
        kgen_cpu_dynamic_shared[kgen_cpu::DYNAMIC_SHARED_BYTES];                          \
    }                                                                                     \
    unsigned char* kgen_cpu::dynamic_shared() { return kgen_cpu_dynamic_shared; }

#define KGEN_CPU_DYNAMIC_SHARED_NAME(NAME) \
    asm(".globl " #NAME "\n.set " #NAME ", kgen_cpu_dynamic_shared\n");
