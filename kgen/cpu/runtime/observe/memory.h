// The memory that a kernel can reach, and a shadow of it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "findings.h"
#include "job.h"
#include "shadow.h"

namespace kgen_cpu::observing {

// The words of a region that nobody accesses take no memory: its pages come from the system
// untouched.
class Shadow {
  public:
    explicit Shadow(size_t bytes);
    Word& operator[](size_t word) { return words_.get()[word]; }

  private:
    std::shared_ptr<Word> words_;
};

struct Region {
    std::string name;
    uintptr_t first;
    size_t bytes;
    bool is_shared;
    bool is_tracked;      // false for what kernels can only read
    bool is_initialised;  // before the first launch
    Shadow shadow;
    bool is_output = false;  // all of it is to be written

    bool holds(uintptr_t address, size_t size) const {
        return address >= first && address + size <= first + bytes;
    }
    // Whether a load is of a vector that holds some of what kernels can only read. Memory is mapped
    // by more than a vector, so the rest of it can be read, and has no meaning.
    bool is_edged_by(const Access& load) const {
        const bool is_vector = load.bytes <= 16 && load.address % load.bytes == 0;
        const bool meets = load.address + load.bytes > first && load.address < first + bytes;
        return load.kind == AccessKind::load && !is_tracked && is_vector && meets;
    }
};

// Where an access goes. Constants and threadIdx are `other`; `stray` is where a wrong index into
// shared memory leads beyond the gaps between arrays, to what the runtime needs.
struct Target {
    enum class Kind { other, global, shared, stray } kind;
    Region* region;  // null for an address outside every region of that kind
    int rank = 0;    // of the block in its group, for shared memory
};

class Memory {
  public:
    explicit Memory(const Job& job);
    void begin_launch(const Launch& launch);
    // The blocks whose shared memory starts at these addresses, of which `first` is the first.
    void begin_group(unsigned first, const std::vector<uintptr_t>& images);
    void set_running(int rank) { rank_ = rank; }

    Target find(const Access& access);
    // Where the address lies, or which region it misses by least.
    Place place(uintptr_t address) const;
    std::vector<Region>& buffers() { return buffers_; }

  private:
    // A block's shared memory.
    struct Image {
        uintptr_t first;
        std::vector<Region> arrays;
    };

    void add_shared();
    Image new_image() const;
    Target find_shared(const Access& access, int rank);
    Target find_outside(uintptr_t address) const;
    const Region& nearest(uintptr_t address) const;

    const Job& job_;
    std::vector<Region> buffers_;
    struct Array {
        std::string name;
        size_t offset, bytes;
    };
    std::vector<Array> arrays_;  // of every image; the dynamic one is the last
    std::vector<Image> images_;  // by rank
    int blocks_ = 0;             // of the group
    unsigned first_block_ = 0;
    int rank_ = 0;
    size_t image_bytes_ = 0;
    std::vector<uint8_t>
        owners_;  // of each word of an image: 0 nobody, 1 the runtime, 2... arrays_
    bool has_dynamic_ = false;
};

}  // namespace kgen_cpu::observing
