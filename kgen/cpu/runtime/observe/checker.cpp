#include "checker.h"

#include <algorithm>

namespace kgen_cpu::observing {

namespace {

constexpr const char* OUT_OF_BOUNDS = "out_of_bounds";
constexpr const char* UNINITIALISED = "uninitialised";
constexpr const char* WRITTEN_TWICE = "written_twice";
constexpr const char* UNWRITTEN = "unwritten";
constexpr const char* RACE = "race";
constexpr const char* UNFENCED = "unfenced";

bool is_atomic(AccessKind kind) {
    return kind == AccessKind::atomic || kind == AccessKind::atomic_load;
}
bool is_store(AccessKind kind) {
    return kind == AccessKind::store || kind == AccessKind::async_store;
}

}  // namespace

void Checker::begin_launch(const Launch& launch) {
    kernel_ = launch.name;
    order_.begin_launch();
}

void Checker::access(const Target& target, const Access& access, int thread) {
    if (!target.region) {
        const Stamp now = order_.stamp(access, thread, 0);
        report(OUT_OF_BOUNDS, access.address, now);
        return;
    }
    Region& region = *target.region;
    if (!region.is_tracked) return;
    if (is_atomic(access.kind)) {
        order_.atomic(access.address, access.kind == AccessKind::atomic);
    }
    const uintptr_t end = access.address + access.bytes;
    for (uintptr_t byte = access.address; byte < end;) {
        const uintptr_t in_word = (byte - region.first) & (word_bytes - 1);
        const uintptr_t count = std::min<uintptr_t>(word_bytes - in_word, end - byte);
        const auto bytes = static_cast<uint8_t>(((1u << count) - 1) << in_word);
        check_word(region, byte, order_.stamp(access, thread, bytes));
        byte += count;
    }
}

void Checker::check_fence(const Target& target, const Access& access, int thread) {
    if (!target.region) return;
    Region& region = *target.region;
    const Stamp now = order_.stamp(access, thread, 0);
    const uintptr_t end = access.address + access.bytes;
    for (uintptr_t byte = access.address; byte < end; byte += word_bytes) {
        const Stamp& writer = region.shadow[(byte - region.first) >> word_shift].writer;
        if (!is_live(region, writer) || writer.kind == AccessKind::async_store) continue;
        const Clocks& clocks = order_.clocks();
        const bool is_fenced = clocks.is_fenced(order_.number(writer), writer.slot, writer.time) ||
                               clocks.is_fenced(order_.number(now), writer.slot, writer.time);
        if (!is_fenced) report(UNFENCED, byte, now);
    }
}

void Checker::check_word(Region& region, uintptr_t address, const Stamp& now) {
    Word& word = region.shadow[(address - region.first) >> word_shift];
    if (!is_store(now.kind)) check_read(region, word, address, now);
    if (now.kind == AccessKind::load || now.kind == AccessKind::atomic_load) {
        keep_reader(region, word, now);
        return;
    }
    check_write(region, word, address, now);
    word = {now, {}};
}

void Checker::check_read(Region& region, const Word& word, uintptr_t address, const Stamp& now) {
    if (!is_live(region, word.writer)) {
        if (!region.is_initialised) report(UNINITIALISED, address, now);
    } else if (is_race(region, word.writer, now)) {
        report(RACE, address, now, &word.writer);
    }
}

void Checker::check_write(Region& region, const Word& word, uintptr_t address, const Stamp& now) {
    const Stamp* const before[] = {&word.writer, &word.readers[0], &word.readers[1]};
    bool is_read = false;
    for (const Stamp* stamp : before) {
        if (is_race(region, *stamp, now)) {
            if (stamp != &word.writer || is_store(now.kind)) {
                report(RACE, address, now, stamp);
            }
            return;
        }
        is_read |= stamp != &word.writer && is_live(region, *stamp);
    }
    if (region.is_output && !is_read && order_.is_of_this_launch(word.writer) &&
        !order_.is_same_thread(word.writer, now)) {
        report(WRITTEN_TWICE, address, now);
    }
}

void Checker::keep_reader(const Region& region, Word& word, const Stamp& now) const {
    for (Stamp& reader : word.readers) {
        if (is_live(region, reader) && !order_.is_before(reader, now)) continue;
        reader = now;
        return;
    }
    if (order_.is_same_warp(word.readers[0], word.readers[1])) word.readers[1] = now;
}

bool Checker::is_live(const Region& region, const Stamp& stamp) const {
    return stamp.run_block != 0 && (!region.is_shared || order_.is_of_this_group(stamp));
}

bool Checker::is_race(const Region& region, const Stamp& before, const Stamp& now) const {
    if (!is_live(region, before) || !(before.bytes & now.bytes)) return false;
    if (is_atomic(before.kind) && is_atomic(now.kind)) return false;
    return !order_.is_before(before, now);
}

void Checker::report(const char* what, uintptr_t address, const Stamp& now, const Stamp* before) {
    if (findings_.repeats(what, now.program_counter, before ? before->program_counter : 0)) return;
    std::vector<Party> parties = {party(now)};
    if (before) parties.push_back(party(*before));
    findings_.add(what, kernel_, memory_.place(address), parties);
}

Party Checker::party(const Stamp& stamp) const {
    return {order_.block_of(stamp), stamp.thread, stamp.program_counter, stamp.kind};
}

void Checker::end_job() {
    for (Region& buffer : memory_.buffers()) {
        if (buffer.is_output) check_output(buffer);
    }
    findings_.write();
}

void Checker::check_output(Region& output) {
    uint64_t unwritten = 0;
    size_t first = 0;
    for (size_t word = output.bytes >> word_shift; word-- > 0;) {
        if (output.shadow[word].writer.run_block) continue;
        first = word;
        ++unwritten;
    }
    if (!unwritten) return;
    const uintptr_t address = output.first + first * word_bytes;
    findings_.add(UNWRITTEN, kernel_, memory_.place(address), {{0, -1, 0, AccessKind::store}},
                  unwritten);
}

}  // namespace kgen_cpu::observing
