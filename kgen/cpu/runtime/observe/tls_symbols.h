// The variables in the executable's thread-local storage: a kernel's `__shared__` ones and a few of
// the runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kgen_cpu::observing {

struct TlsSymbol {
    std::string name;  // as the source spells it, for instance "row_reduce<Max>(float)::values"
    size_t offset;     // in the thread's image
    size_t bytes;
    bool is_runtime;
};

// Reads the symbol table of the running executable; without one, no symbol.
std::vector<TlsSymbol> tls_symbols();

}  // namespace kgen_cpu::observing
