// What code compiled with -fsanitize=alignment calls in front of a misaligned access, and with
// -fsanitize=bounds in front of one past the end of an array. The
// compilers' own libubsan is not linked: it would only print, and knows no CUDA thread. The layouts
// are part of the ABI that GCC and Clang share.
#include <cstdint>

#include "block.h"

namespace {

struct SourceLocation {
    const char* file;
    uint32_t line;
    uint32_t column;
};

struct TypeDescriptor {
    uint16_t kind;
    uint16_t info;
    char name[1];  // zero-terminated, in quotes
};

struct TypeMismatch {
    SourceLocation location;
    const TypeDescriptor* type;
    unsigned char log_alignment;
    unsigned char access;
};

struct OutOfBounds {
    SourceLocation location;
    const TypeDescriptor* array;
    const TypeDescriptor* index;
};

kgen_cpu::Site site_of(const SourceLocation& location) {
    return {location.file, static_cast<int>(location.line)};
}

}  // namespace

extern "C" void __ubsan_handle_out_of_bounds_abort(OutOfBounds* found, void* index) {
    using namespace kgen_cpu;
    Block& block = *Block::current();
    block.fault(site_of(found->location), block.thread(), "index %d is outside an array of type %s",
                static_cast<int>(reinterpret_cast<intptr_t>(index)), found->array->name);
}

extern "C" void __ubsan_handle_type_mismatch_v1_abort(TypeMismatch* mismatch, void* address) {
    using namespace kgen_cpu;
    Block& block = *Block::current();
    block.fault(site_of(mismatch->location), block.thread(),
                "misaligned access: %s is not %u-byte aligned, as %s must be",
                describe_address(block.job(), address).c_str(), 1u << mismatch->log_alignment,
                mismatch->type->name);
}
