#include "shared_memory.h"

#include <link.h>

#include <algorithm>
#include <cstring>

#include "kernel_table.h"

namespace kgen_cpu {

namespace {

constexpr int POISON = 0xff;  // NaN as a float, -1 as an int

struct Image {
    unsigned char* data;
    size_t bytes;
};

// The first module that the loader lists is the executable.
int take_executable(dl_phdr_info* module, size_t, void* result) {
    Image* image = static_cast<Image*>(result);
    for (int i = 0; i < module->dlpi_phnum; ++i) {
        if (module->dlpi_phdr[i].p_type != PT_TLS) continue;
        *image = {static_cast<unsigned char*>(module->dlpi_tls_data), module->dlpi_phdr[i].p_memsz};
    }
    return 1;
}

}  // namespace

SharedMemory::SharedMemory() : dynamic_(dynamic_shared()) {
    Image image = {};
    dl_iterate_phdr(take_executable, &image);
    image_ = image.data;
    image_bytes_ = image.bytes;
}

void SharedMemory::poison(size_t dynamic_bytes) {
    unsigned char* end = image_ + image_bytes_;
    if (!dynamic_) {
        std::memset(image_, POISON, image_bytes_);
        return;
    }
    // Not the whole 227 KB of it for every block.
    std::memset(image_, POISON, dynamic_ - image_);
    std::memset(dynamic_, POISON, dynamic_bytes + DYNAMIC_SHARED_GUARD);
    unsigned char* after = dynamic_ + DYNAMIC_SHARED_BYTES;
    std::memset(after, POISON, end - after);
}

bool SharedMemory::is_guard_intact(size_t dynamic_bytes) const {
    if (!dynamic_) return true;
    const unsigned char* guard = dynamic_ + dynamic_bytes;
    return std::all_of(guard, guard + DYNAMIC_SHARED_GUARD,
                       [](unsigned char byte) { return byte == POISON; });
}

}  // namespace kgen_cpu
