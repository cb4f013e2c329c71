#include "tls_symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace kgen_cpu::observing {

namespace {

using Header = ElfW(Ehdr);
using Section = ElfW(Shdr);
using Symbol = ElfW(Sym);

bool is_of_runtime(const std::string& symbol) {
    for (const char* name : {"threadIdx", "blockIdx", "blockDim", "gridDim"}) {
        if (symbol == name) return true;
    }
    return symbol.rfind("_ZN8kgen_cpu", 0) == 0;
}

std::string demangled(const std::string& symbol) {
    int status = 0;
    char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
    const std::string name = text ? text : symbol;
    std::free(text);
    return name;
}

}  // namespace

std::vector<TlsSymbol> tls_symbols() {
    std::ifstream file("/proc/self/exe", std::ios::binary);
    const std::string elf{std::istreambuf_iterator<char>(file), {}};
    std::vector<TlsSymbol> found;
    if (elf.size() < sizeof(Header)) return found;
    const auto* header = reinterpret_cast<const Header*>(elf.data());
    const auto* sections = reinterpret_cast<const Section*>(elf.data() + header->e_shoff);
    for (int i = 0; i < header->e_shnum; ++i) {
        if (sections[i].sh_type != SHT_SYMTAB) continue;
        const char* names = elf.data() + sections[sections[i].sh_link].sh_offset;
        const auto* symbols = reinterpret_cast<const Symbol*>(elf.data() + sections[i].sh_offset);
        for (size_t k = 0; k < sections[i].sh_size / sizeof(Symbol); ++k) {
            if ((symbols[k].st_info & 0xf) != STT_TLS || symbols[k].st_shndx == SHN_UNDEF) continue;
            const std::string name = names + symbols[k].st_name;
            found.push_back({demangled(name), static_cast<size_t>(symbols[k].st_value),
                             static_cast<size_t>(symbols[k].st_size), is_of_runtime(name)});
        }
    }
    return found;
}

}  // namespace kgen_cpu::observing
