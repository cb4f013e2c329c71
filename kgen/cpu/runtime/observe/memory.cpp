#include "memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "report.h"
#include "shared_memory.h"
#include "tls_symbols.h"

extern "C" char __data_start, _end;

namespace kgen_cpu::observing {

namespace {

constexpr uint8_t NOBODY = 0;
constexpr uint8_t RUNTIME = 1;
constexpr uint8_t FIRST_REGION = 2;
// How far from a shared array an address may be that a wrong index into it explains.
constexpr uintptr_t STRAY_BYTES = uintptr_t{1} << 28;
constexpr const char* DYNAMIC_NAME = "dynamic shared memory";

uintptr_t number_of(const void* address) { return reinterpret_cast<uintptr_t>(address); }

// How far the address is from the region; 0 inside.
uintptr_t distance(uintptr_t address, const Region& region) {
    if (address < region.first) return region.first - address;
    const uintptr_t end = region.first + region.bytes;
    return address < end ? 0 : address - end + 1;
}

}  // namespace

Shadow::Shadow(size_t bytes) {
    const size_t size = ((bytes >> word_shift) + 2) * sizeof(Word);
    void* words = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (words == MAP_FAILED) {
        end_without_memory(size, "the shadow of the kernel's memory");
    }
    words_.reset(static_cast<Word*>(words), [size](Word* first) { munmap(first, size); });
}

Memory::Memory(const Job& job) : job_(job) {
    word_bytes = job.word_bytes;
    word_shift = static_cast<uint32_t>(__builtin_ctz(word_bytes));
    for (const Buffer& buffer : job.buffers) {
        buffers_.push_back({buffer.name, number_of(buffer.data), buffer.bytes, false,
                            buffer.is_writable, buffer.is_initialised, Shadow(buffer.bytes),
                            buffer.is_output});
    }
    const size_t bytes = &_end - &__data_start;
    buffers_.push_back({"__device__ variables", number_of(&__data_start), bytes, false, true, true,
                        Shadow(bytes)});
    add_shared();
}

void Memory::add_shared() {
    const SharedMemory shared;
    image_bytes_ = shared.image_bytes();
    has_dynamic_ = dynamic_shared() != nullptr;
    const size_t dynamic = shared.offset(dynamic_shared());
    owners_.assign((image_bytes_ >> word_shift) + 1, NOBODY);
    for (const TlsSymbol& symbol : tls_symbols()) {
        if ((has_dynamic_ && symbol.offset == dynamic) || symbol.bytes == 0) continue;
        uint8_t owner = RUNTIME;
        if (!symbol.is_runtime) {
            owner = static_cast<uint8_t>(FIRST_REGION + arrays_.size());
            arrays_.push_back({"shared array " + symbol.name, symbol.offset, symbol.bytes});
        }
        const size_t words = (symbol.bytes + word_bytes - 1) >> word_shift;
        std::fill_n(owners_.begin() + (symbol.offset >> word_shift), words, owner);
    }
    if (has_dynamic_) arrays_.push_back({DYNAMIC_NAME, dynamic, 0});
}

// The dynamic array has the last number, and the launch's size.
void Memory::begin_launch(const Launch& launch) {
    if (!has_dynamic_) return;
    Array& dynamic = arrays_.back();
    dynamic.bytes = launch.shared_bytes;
    const auto first = owners_.begin() + (dynamic.offset >> word_shift);
    std::fill_n(first, DYNAMIC_SHARED_BYTES >> word_shift, NOBODY);
    const auto owner = static_cast<uint8_t>(FIRST_REGION + arrays_.size() - 1);
    std::fill_n(first, (launch.shared_bytes + word_bytes - 1) >> word_shift, owner);
}

Memory::Image Memory::new_image() const {
    Image image = {};
    for (const Array& array : arrays_) {
        const bool is_dynamic = has_dynamic_ && &array == &arrays_.back();
        const size_t bytes = is_dynamic ? MAX_DYNAMIC_SHARED : array.bytes;
        image.arrays.push_back({array.name, 0, bytes, true, true, false, Shadow(bytes)});
    }
    return image;
}

void Memory::begin_group(unsigned first, const std::vector<uintptr_t>& images) {
    first_block_ = first;
    blocks_ = static_cast<int>(images.size());
    while (images_.size() < images.size()) images_.push_back(new_image());
    for (size_t rank = 0; rank < images.size(); ++rank) {
        Image& image = images_[rank];
        image.first = images[rank];
        for (size_t i = 0; i < arrays_.size(); ++i) {
            image.arrays[i].first = image.first + arrays_[i].offset;
            image.arrays[i].bytes = arrays_[i].bytes;
        }
    }
}

Target Memory::find(const Access& access) {
    if (access.address - images_[rank_].first < image_bytes_) return find_shared(access, rank_);
    for (Region& buffer : buffers_) {
        if (buffer.holds(access.address, access.bytes) || buffer.is_edged_by(access))
            return {Target::Kind::global, &buffer};
    }
    for (int rank = 0; rank < blocks_; ++rank) {
        if (access.address - images_[rank].first < image_bytes_) return find_shared(access, rank);
    }
    return find_outside(access.address);
}

Target Memory::find_shared(const Access& access, int rank) {
    Image& image = images_[rank];
    const uint8_t owner = owners_[(access.address - image.first) >> word_shift];
    if (owner == RUNTIME) {
        const bool is_read = access.kind == AccessKind::load;
        return {is_read ? Target::Kind::other : Target::Kind::stray, nullptr, rank};
    }
    Region* region = owner == NOBODY ? nullptr : &image.arrays[owner - FIRST_REGION];
    if (region && !region->holds(access.address, access.bytes)) region = nullptr;
    return {Target::Kind::shared, region, rank};
}

Target Memory::find_outside(uintptr_t address) const {
    const Region& region = nearest(address);
    if (region.is_shared && distance(address, region) < STRAY_BYTES) {
        return {Target::Kind::stray, nullptr};
    }
    const bool is_near = is_near_buffer(job_, reinterpret_cast<const void*>(address));
    return {is_near ? Target::Kind::global : Target::Kind::other, nullptr};
}

const Region& Memory::nearest(uintptr_t address) const {
    const Region* found = &buffers_[0];
    const auto look_at = [&](const std::vector<Region>& regions) {
        for (const Region& region : regions) {
            if (distance(address, region) < distance(address, *found)) found = &region;
        }
    };
    look_at(buffers_);
    for (int rank = 0; rank < blocks_; ++rank) look_at(images_[rank].arrays);
    return *found;
}

Place Memory::place(uintptr_t address) const {
    const Region& region = nearest(address);
    std::string name = region.name;
    if (region.is_shared && blocks_ > 1) {
        int rank = 0;
        while (address - images_[rank].first >= image_bytes_ && rank + 1 < blocks_) ++rank;
        name += " of block " + std::to_string(first_block_ + static_cast<unsigned>(rank));
    }
    return {name, static_cast<int64_t>(address - region.first), region.bytes};
}

}  // namespace kgen_cpu::observing
