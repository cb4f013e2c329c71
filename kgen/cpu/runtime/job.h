// What one run of the executable is asked to do: the text that kgen/cpu/run.py writes to its stdin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "kernel_table.h"
#include "ready_threads.h"

namespace kgen_cpu {

struct Launch {
    std::string name;
    const Kernel* kernel;
    unsigned grid;
    unsigned grid_width;      // of the first dimension; what is behind it has the next second index
    unsigned skipped_blocks;  // the first ones, which are not run
    unsigned block;
    unsigned block_width;
    unsigned shared_bytes;
    unsigned cluster_size;
    bool is_co_resident;  // all blocks run at the same time
    std::vector<Slot> arguments;

    // How many blocks run at the same time, and may wait for each other.
    unsigned group_size() const { return is_co_resident ? grid - skipped_blocks : cluster_size; }
};

// Addresses of which a region of the shared file backs the last ones: all of the buffer, or its
// last rows alone where only they are run. The others are unmapped, and so are those around them.
struct Buffer {
    std::string name;
    char* data;      // what the kernel gets
    size_t bytes;    // guards not counted
    size_t skipped;  // how many of them, from the start, nothing backs
    bool is_writable;
    bool is_initialised;  // before the first launch
    bool is_output;       // all of it is to be written
};

struct Job {
    Schedule schedule;
    uint64_t seed;
    unsigned workers;
    uint32_t word_bytes;  // the least that threads access apart
    std::vector<Buffer> buffers;
    std::vector<Launch> launches;
};

// Reads a job and maps its buffers; ends the process with a message on stderr when the text is not
// a job or a launch does not fit its kernel.
Job read_job(FILE* file);

// The address as the user would say it, for instance "16 bytes past the end of x".
std::string describe_address(const Job& job, const volatile void* address);

// True inside a buffer or so near it that a wrong index explains the address.
bool is_near_buffer(const Job& job, const void* address);

// The byte of a buffer that was meant, as the user would say it, when the address is off by 4 GB or
// a multiple: what an offset loses that is computed in 32 bits. Otherwise empty.
std::string describe_meant_byte(const Job& job, const void* address);

// True inside the data of a buffer that kernels may not write.
bool is_read_only(const Job& job, const void* address);

}  // namespace kgen_cpu
