"""Whether two sources give the same machine code: then no run can tell them apart."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kgen.errors import CompileFailed
from kgen.sources.source import Source
from kgen.toolchain import compile_cubin

_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")  # of an ELF64 file, as cubins are
_SECTION = struct.Struct("<IIQQQQIIQQ")


@dataclass(frozen=True)
class _Section:
    name_at: int
    offset: int
    size: int


def same_machine_code(one: Source, other: Source, arch: str = "sm_90") -> bool:
    """Return whether both sources compile to the same instructions in every kernel."""
    try:
        images = [compile_cubin(source, arch).image for source in (one, other)]
    except CompileFailed:
        return False
    return code_of(images[0]) == code_of(images[1])


def code_of(cubin: bytes) -> dict[str, bytes]:
    """Return the instructions of a cubin's kernels: the ELF sections called `.text.KERNEL`."""
    *_, table, _, _, _, _, size, count, names_at = _HEADER.unpack_from(cubin)
    sections = []
    for index in range(count):
        name, _, _, _, offset, length, *_ = _SECTION.unpack_from(cubin, table + index * size)
        sections.append(_Section(name, offset, length))
    strings = sections[names_at]
    code = {}
    for section in sections:
        start = strings.offset + section.name_at
        name = cubin[start : cubin.index(b"\0", start)].decode()
        if name.startswith(".text."):
            code[name] = cubin[section.offset : section.offset + section.size]
    return code
