#include "findings.h"

#include <unistd.h>

#include <cstring>

namespace kgen_cpu::observing {

namespace {

const char* name_of(AccessKind kind) {
    switch (kind) {
        case AccessKind::load: return "read";
        case AccessKind::store:
        case AccessKind::async_store: return "write";
        default: return "atomic";
    }
}

std::string json_of(const Party& party) {
    const bool is_line = party.program_counter & LINE_FLAG;
    return "{\"block\": " + std::to_string(party.block) +
           ", \"thread\": " + std::to_string(party.thread) +
           (is_line ? ", \"line\": " : ", \"program_counter\": ") +
           std::to_string(party.program_counter & ~LINE_FLAG) + ", \"kind\": \"" +
           name_of(party.kind) + "\"}";
}

}  // namespace

void Findings::add(const char* what, const std::string& kernel, const Place& place,
                   const std::vector<Party>& parties, uint64_t times) {
    std::string json = std::string("\"what\": \"") + what + "\", \"kernel\": \"" + kernel +
                       "\", \"buffer\": \"" + place.buffer +
                       "\", \"offset\": " + std::to_string(place.offset) +
                       ", \"buffer_bytes\": " + std::to_string(place.bytes) + ", \"parties\": [";
    for (const Party& party : parties) json += (json.back() == '[' ? "" : ", ") + json_of(party);
    const uint32_t other = parties.size() > 1 ? parties[1].program_counter : 0;
    findings_[{what, parties[0].program_counter, other}] = {json + "]", times};
}

bool Findings::repeats(const char* what, uint32_t program_counter, uint32_t other) {
    auto found = findings_.find({what, program_counter, other});
    if (found == findings_.end()) found = findings_.find({what, other, program_counter});
    if (found == findings_.end()) return false;
    ++found->second.times;
    return true;
}

void Findings::write() const {
    for (const auto& [key, finding] : findings_) {
        write_line("{\"finding\": {" + finding.json +
                   ", \"times\": " + std::to_string(finding.times) + "}}");
    }
}

void write_line(const std::string& line) {
    const std::string text = line + "\n";
    for (size_t done = 0; done < text.size();) {
        const ssize_t written = write(STDERR_FILENO, text.data() + done, text.size() - done);
        if (written < 0) _exit(4);
        done += static_cast<size_t>(written);
    }
}

}  // namespace kgen_cpu::observing
