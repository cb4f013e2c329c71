#include "counts.h"

#include <algorithm>

namespace kgen_cpu::observing {

namespace {

constexpr uintptr_t SECTOR_BYTES = 32;
constexpr int BANKS = 32;
constexpr int BANK_BYTES = 4;
// The lanes of wide accesses take turns, so that a turn moves at most this much.
constexpr int TURN_BYTES = BANKS * BANK_BYTES;

// The sectors that the lanes touch, each counted once.
int sectors(const Request& request) {
    uintptr_t touched[2 * WARP_SIZE];  // an access of up to 32 bytes touches at most two
    int count = 0;
    for (uint32_t lanes = request.lanes; lanes; lanes &= lanes - 1) {
        const uintptr_t address = request.addresses[__builtin_ctz(lanes)];
        const uintptr_t last = (address + request.bytes - 1) / SECTOR_BYTES;
        for (uintptr_t sector = address / SECTOR_BYTES; sector <= last; ++sector) {
            if (count == 0 || touched[count - 1] != sector) touched[count++] = sector;
        }
    }
    std::sort(touched, touched + count);
    return static_cast<int>(std::unique(touched, touched + count) - touched);
}

// How many more turns than one the lanes from `first` need, since a bank serves one word a turn.
int extra_turns(const Request& request, int first, int lanes) {
    uintptr_t words[BANKS][WARP_SIZE];
    int depth[BANKS] = {};
    for (int lane = first; lane < first + lanes; ++lane) {
        if (!(request.lanes >> lane & 1)) continue;
        const uintptr_t address = request.addresses[lane];
        for (uintptr_t byte = address; byte < address + request.bytes; byte += BANK_BYTES) {
            const uintptr_t word = byte / BANK_BYTES;
            uintptr_t* in_bank = words[word % BANKS];
            int& count = depth[word % BANKS];
            if (std::find(in_bank, in_bank + count, word) == in_bank + count)
                in_bank[count++] = word;
        }
    }
    return std::max(*std::max_element(depth, depth + BANKS) - 1, 0);
}

int bank_conflicts(const Request& request) {
    const int lanes_a_turn = std::min(WARP_SIZE, TURN_BYTES / request.bytes);
    int conflicts = 0;
    for (int first = 0; first < WARP_SIZE; first += lanes_a_turn) {
        conflicts += extra_turns(request, first, lanes_a_turn);
    }
    return conflicts;
}

std::string field(const std::string& name, uint64_t number) {
    return "\"" + name + "\": " + std::to_string(number);
}

std::string list_field(const std::string& name, const uint64_t* numbers, int count) {
    std::string text = "\"" + name + "\": [";
    for (int i = 0; i < count; ++i) text += (i ? ", " : "") + std::to_string(numbers[i]);
    return text + "]";
}

}  // namespace

void Counts::add(const Request& request) {
    const int lanes = __builtin_popcount(request.lanes);
    if (request.kind == AccessKind::exponential) {
        ++exponentials_;
        thread_exponentials_ += lanes;
        return;
    }
    if (request.kind == AccessKind::atomic || request.kind == AccessKind::atomic_load) {
        ++atomics_;
        return;
    }
    const bool is_load = request.kind == AccessKind::load;
    Accesses& accesses = request.is_shared ? shared_ : global_;
    ++(is_load ? accesses.loads : accesses.stores)[__builtin_ctz(request.bytes)];
    (is_load ? accesses.bytes_loaded : accesses.bytes_stored) += lanes * request.bytes;
    if (request.is_shared) shared_bank_conflicts_ += bank_conflicts(request);
    else (is_load ? global_sectors_loaded_ : global_sectors_stored_) += sectors(request);
}

void Counts::add_warp_op(WarpOpKind kind) {
    switch (kind) {
        case WarpOpKind::sync: ++warp_syncs_; break;
        case WarpOpKind::ballot:
        case WarpOpKind::any:
        case WarpOpKind::all: ++votes_; break;
        default: ++shuffles_;
    }
}

std::string Counts::json_of(const char* space, const Accesses& accesses) {
    const std::string name = space;
    return list_field(name + "_loads_by_width", accesses.loads, WIDTHS) + ", " +
           list_field(name + "_stores_by_width", accesses.stores, WIDTHS) + ", " +
           field(name + "_bytes_loaded", accesses.bytes_loaded) + ", " +
           field(name + "_bytes_stored", accesses.bytes_stored);
}

std::string Counts::json() const {
    return json_of("global", global_) + ", " + json_of("shared", shared_) + ", " +
           field("global_sectors_loaded", global_sectors_loaded_) + ", " +
           field("global_sectors_stored", global_sectors_stored_) + ", " +
           field("shared_bank_conflicts", shared_bank_conflicts_) + ", " +
           field("atomics", atomics_) + ", " + field("exponentials", exponentials_) + ", " +
           field("thread_exponentials", thread_exponentials_) + ", " +
           field("shuffles", shuffles_) + ", " + field("votes", votes_) + ", " +
           field("warp_syncs", warp_syncs_) + ", " + field("barriers", barriers_) + ", " +
           field("warp_reductions", reductions_);
}

}  // namespace kgen_cpu::observing
