#include "findings.h"

#include <unistd.h>

#include <cstring>

namespace kgen_cpu::observing {

namespace {

const char* name_of(AccessKind kind) {
    switch (kind) {
        case AccessKind::load: return "read";
        case AccessKind::store: return "write";
        default: return "atomic";
    }
}

std::string json_of(const Party& party) {
    return "{\"block\": " + std::to_string(party.block) +
           ", \"thread\": " + std::to_string(party.thread) +
           ", \"program_counter\": " + std::to_string(party.program_counter) + ", \"kind\": \"" +
           name_of(party.kind) + "\"}";
}

}  // namespace

void Findings::add(const char* what, const std::string& kernel, const std::string& place, int bytes,
                   const Party& party, const Party* other) {
    const std::string json = std::string("\"what\": \"") + what + "\", \"kernel\": \"" + kernel +
                             "\", \"place\": \"" + place +
                             "\", \"bytes\": " + std::to_string(bytes) + ", \"parties\": [" +
                             json_of(party) + (other ? ", " + json_of(*other) : "") + "]";
    const uint32_t other_counter = other ? other->program_counter : 0;
    findings_[{what, party.program_counter, other_counter}] = {json, 1};
}

bool Findings::repeats(const char* what, uint32_t program_counter, uint32_t other) {
    const auto found = findings_.find({what, program_counter, other});
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
