// A place in the kernel's source. Every intrinsic takes one as its last, defaulted argument, so a
// fault names the line of the `.cu` although the `.cu` knows nothing of it: compilers evaluate
// __builtin_LINE() in (nested) default arguments at the outermost call.
#pragma once

namespace kgen_cpu {

struct Site {
    const char* file;
    int line;
};

constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
}

inline bool operator==(Site a, Site b) {
    return a.line == b.line && (a.file == b.file || __builtin_strcmp(a.file, b.file) == 0);
}
inline bool operator!=(Site a, Site b) { return !(a == b); }

}  // namespace kgen_cpu
