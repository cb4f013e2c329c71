// A block's shared memory: the thread-local storage of the OS thread that runs it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kgen_cpu {

class SharedMemory {
  public:
    // Finds the shared memory of the calling OS thread.
    SharedMemory();

    // Fills the static shared memory and `dynamic_bytes` of the dynamic one with NaN bytes: on a
    // GPU it holds anything, and what a block forgot to initialise must not look like a zero. All
    // thread-local variables of the executable lie there: callers set theirs afterwards.
    void poison(size_t dynamic_bytes);

    // False when something was written behind the dynamic shared memory that poison() was given.
    bool is_guard_intact(size_t dynamic_bytes) const;

    bool holds(const volatile void* address) const { return offset(address) < image_bytes_; }
    size_t offset(const volatile void* address) const {
        return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(image_);
    }
    unsigned char* image() const { return image_; }
    size_t image_bytes() const { return image_bytes_; }

  private:
    unsigned char* image_;
    size_t image_bytes_;
    unsigned char* dynamic_;
};

}  // namespace kgen_cpu
