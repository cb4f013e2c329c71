#include "report.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

namespace kgen_cpu {

namespace {

// Appends `text` as the inside of a JSON string.
char* append_escaped(char* out, const char* end, const char* text) {
    for (; *text && out + 2 < end; ++text) {
        if (*text == '"' || *text == '\\') *out++ = '\\';
        *out++ = *text;
    }
    *out = '\0';
    return out;
}

}  // namespace

void write_report(const Report& report) {
    char file[512] = "";
    char message[1024];
    char line[2048];
    if (report.site.line) append_escaped(file, file + sizeof file, report.site.file);
    append_escaped(message, message + sizeof message, report.message);
    const int length = std::snprintf(
        line, sizeof line,
        "{\"kernel\": \"%s\", \"block\": %u, \"thread\": %d, \"file\": \"%s\", \"line\": %d, "
        "\"program_counter\": %zu, \"message\": \"%s\"}\n",
        report.kernel, report.block, report.thread, file, report.site.line,
        reinterpret_cast<size_t>(report.program_counter), message);
    if (write(STDERR_FILENO, line, length) != length) _exit(4);
}

void end_without_memory(size_t bytes, const char* purpose) {
    std::fprintf(stderr, "%zu MB of memory for %s are not to be had (%s)\n", (bytes >> 20) + 1,
                 purpose, std::strerror(errno));
    _exit(EXIT_LACKING);  // other OS threads may be running a block
}

void end_without_thread(int error) {
    std::fprintf(stderr, "no thread can be started (%s)\n", std::strerror(error));
    _exit(EXIT_LACKING);
}

void end_when_new_fails() {
    std::set_new_handler([] {
        std::fputs("no memory is to be had\n", stderr);
        _exit(EXIT_LACKING);
    });
}

}  // namespace kgen_cpu
