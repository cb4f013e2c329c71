#include "job.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

#include "report.h"

namespace kgen_cpu {

namespace {

// Each buffer has this much address space for itself, at addresses that nothing else gets, with a
// gap in front of it and one behind it. None of it is reserved, since reserving counts against a
// limit of address space, and all of it lies within the 39 bits that the smallest systems have.
constexpr size_t SPACE_BYTES = size_t{1} << 37;
constexpr size_t GAP_BYTES = size_t{1} << 34;
// A multiple of every system's pages.
constexpr size_t PAGE_BYTES = size_t{1} << 16;

[[noreturn]] __attribute__((format(printf, 1, 2))) void reject(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::vfprintf(stderr, format, arguments);
    va_end(arguments);
    std::fputc('\n', stderr);
    std::exit(2);
}

std::string read_word(FILE* file) {
    char word[256];
    if (std::fscanf(file, "%255s", word) != 1) reject("the job ends early");
    return word;
}

uint64_t read_number(FILE* file) {
    const std::string word = read_word(file);
    char* end = nullptr;
    const uint64_t number = std::strtoull(word.c_str(), &end, 10);
    if (*end) reject("the job has %s where a number belongs", word.c_str());
    return number;
}

Schedule read_schedule(FILE* file) {
    const std::string word = read_word(file);
    if (word == "in_order") return Schedule::in_order;
    if (word == "reversed") return Schedule::reversed;
    if (word == "warp_greedy") return Schedule::warp_greedy;
    if (word == "random") return Schedule::random;
    reject("the job names an unknown schedule %s", word.c_str());
}

// buffer NAME FILE_DESCRIPTOR OFFSET REGION_BYTES DATA_START DATA_BYTES SKIPPED_BYTES ROLE
// where the role is read_only, writable, scratch (writable, and undefined until a kernel writes it)
// or output (the same, and all of it is to be written), and the data are what follows the skipped
// bytes of the buffer.
Buffer read_buffer(FILE* file, size_t number) {
    const std::string name = read_word(file);
    const int descriptor = static_cast<int>(read_number(file));
    const off_t offset = static_cast<off_t>(read_number(file));
    const size_t region_bytes = read_number(file);
    const size_t data_start = read_number(file);
    const size_t data_bytes = read_number(file);
    const size_t skipped = read_number(file);
    const std::string role = read_word(file);
    const bool is_writable = role != "read_only";
    const int access = is_writable ? PROT_READ | PROT_WRITE : PROT_READ;

    const size_t place = number * SPACE_BYTES + GAP_BYTES + skipped / PAGE_BYTES * PAGE_BYTES;
    void* wanted = reinterpret_cast<void*>(place);
    void* region =
        mmap(wanted, region_bytes, access, MAP_SHARED | MAP_FIXED_NOREPLACE, descriptor, offset);
    if (region != wanted) end_without_memory(region_bytes, name.c_str());
    char* data = static_cast<char*>(region) + data_start - skipped;
    const bool is_output = role == "output";
    const bool is_initialised = !is_output && role != "scratch";
    return {name, data, skipped + data_bytes, skipped, is_writable, is_initialised, is_output};
}

const Kernel* find_kernel(const std::string& name) {
    for (int i = 0; i < kernel_count; ++i) {
        if (name == kernels[i].name) return &kernels[i];
    }
    reject("the source has no kernel %s", name.c_str());
}

// An argument is the name of a buffer or a number; `letter` is the kernel's parameter.
Slot read_argument(FILE* file, const Job& job, const Launch& launch, char letter) {
    const std::string word = read_word(file);
    for (const Buffer& buffer : job.buffers) {
        if (word != buffer.name) continue;
        if (letter != 'p')
            reject("kernel %s takes no pointer for %s", launch.name.c_str(), word.c_str());
        return reinterpret_cast<Slot>(buffer.data);
    }
    if (letter != 'i')
        reject("kernel %s takes no number for %s", launch.name.c_str(), word.c_str());
    return std::strtoull(word.c_str(), nullptr, 10);
}

// launch KERNEL GRID GRID_WIDTH SKIPPED_BLOCKS BLOCK BLOCK_WIDTH SHARED_BYTES CLUSTER_SIZE
//     IS_CO_RESIDENT ARGUMENT_COUNT ARGUMENT...
Launch read_launch(FILE* file, const Job& job) {
    Launch launch = {};
    launch.name = read_word(file);
    launch.kernel = find_kernel(launch.name);
    launch.grid = static_cast<unsigned>(read_number(file));
    launch.grid_width = static_cast<unsigned>(read_number(file));
    launch.skipped_blocks = static_cast<unsigned>(read_number(file));
    launch.block = static_cast<unsigned>(read_number(file));
    launch.block_width = static_cast<unsigned>(read_number(file));
    launch.shared_bytes = static_cast<unsigned>(read_number(file));
    launch.cluster_size = static_cast<unsigned>(read_number(file));
    launch.is_co_resident = read_number(file) != 0;
    const size_t count = read_number(file);
    const char* letters = launch.kernel->parameters;
    if (count != std::strlen(letters)) {
        reject("kernel %s takes %zu arguments, but the launch passes %zu", launch.name.c_str(),
               std::strlen(letters), count);
    }
    for (size_t i = 0; i < count; ++i) {
        launch.arguments.push_back(read_argument(file, job, launch, letters[i]));
    }
    return launch;
}

// The buffer that the address lies in or so near that a wrong index explains it; null without one.
const Buffer* near_buffer(const Job& job, uintptr_t address) {
    const auto found =
        std::find_if(job.buffers.begin(), job.buffers.end(), [=](const Buffer& buffer) {
            const auto first = reinterpret_cast<uintptr_t>(buffer.data);
            return address + GAP_BYTES >= first && address < first + buffer.bytes + GAP_BYTES;
        });
    return found == job.buffers.end() ? nullptr : &*found;
}

}  // namespace

Job read_job(FILE* file) {
    Job job = {};
    for (std::string key = read_word(file); key != "end"; key = read_word(file)) {
        if (key == "schedule") job.schedule = read_schedule(file);
        else if (key == "seed") job.seed = read_number(file);
        else if (key == "workers") job.workers = static_cast<unsigned>(read_number(file));
        else if (key == "word") job.word_bytes = static_cast<uint32_t>(read_number(file));
        else if (key == "buffer") job.buffers.push_back(read_buffer(file, job.buffers.size() + 1));
        else if (key == "launch") job.launches.push_back(read_launch(file, job));
        else reject("the job has an unknown line %s", key.c_str());
    }
    return job;
}

std::string describe_address(const Job& job, const volatile void* address) {
    const auto number = reinterpret_cast<uintptr_t>(address);
    char text[128];
    const Buffer* buffer = near_buffer(job, number);
    if (!buffer) {
        std::snprintf(text, sizeof text, "address 0x%zx", number);
        return text;
    }
    const auto first = reinterpret_cast<uintptr_t>(buffer->data);
    const auto end = first + buffer->bytes;
    const char* name = buffer->name.c_str();
    if (number < first) {
        std::snprintf(text, sizeof text, "%zu bytes before the start of %s", first - number, name);
    } else if (number >= end) {
        std::snprintf(text, sizeof text, "%zu bytes past the end of %s", number - end, name);
    } else {
        std::snprintf(text, sizeof text, "byte %zu of %s", number - first, name);
    }
    return text;
}

bool is_near_buffer(const Job& job, const void* address) {
    return near_buffer(job, reinterpret_cast<uintptr_t>(address)) != nullptr;
}

std::string describe_meant_byte(const Job& job, const void* address) {
    const auto number = reinterpret_cast<uintptr_t>(address);
    const Buffer* buffer = near_buffer(job, number);
    if (!buffer) return "";
    const auto byte = static_cast<int64_t>(number - reinterpret_cast<uintptr_t>(buffer->data));
    const auto skipped = static_cast<int64_t>(buffer->skipped);
    if (byte >= skipped) return "";
    constexpr int64_t LOST = int64_t{1} << 32;
    const int64_t meant = byte + (skipped - byte + LOST - 1) / LOST * LOST;
    if (meant >= static_cast<int64_t>(buffer->bytes)) return "";
    return "byte " + std::to_string(meant) + " of " + buffer->name;
}

bool is_read_only(const Job& job, const void* address) {
    const char* byte = static_cast<const char*>(address);
    return std::any_of(job.buffers.begin(), job.buffers.end(), [=](const Buffer& buffer) {
        return !buffer.is_writable && byte >= buffer.data + buffer.skipped &&
               byte < buffer.data + buffer.bytes;
    });
}

}  // namespace kgen_cpu
