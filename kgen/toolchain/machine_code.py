"""What a cubin says of itself: its architecture, and the machine code that tells kernels apart.

A cubin is an ELF64 file of little endian. Its sections `.text.KERNEL` and `.nv.constantN.KERNEL`
belong to one kernel; `.nv.constantN` and `.nv.global` to all of the module.
"""

from __future__ import annotations

import hashlib
import io
import re

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from kgen.toolchain.binary import Binary

_ABI_OF_CUDA_13 = 8
_OF_MODULE = re.compile(r"(\.rela?)?\.nv\.(constant\d+|global|global\.init)")
_RELOCATIONS = re.compile(r"\.rela?\.(text|nv\.constant\d+)\..+")


def machine_code_digest(binary: Binary, kernel: str) -> str:
    """Return a SHA-256 that two kernels share only if they have the same machine code.

    It covers the kernel's instructions and constants, its registers and its shared memory, and
    leaves its name out; how it is launched is not part of it. Code that refers to what lies
    outside of it (see `stands_alone`) is the same as itself alone. Raises KeyError for a kernel
    that the binary has not.
    """
    resources = {known.kernel: known for known in binary.kernels}[kernel]
    takes = [resources.registers, resources.stack_bytes, resources.static_shared_bytes]
    if not stands_alone(binary.image):
        return _digest({kernel: binary.image}, takes)
    own = re.compile(rf"(\.text|\.nv\.constant\d+)\.{re.escape(kernel)}")
    parts = {
        found[1]: content
        for name, content in sections(binary.image).items()
        if (found := own.fullmatch(name))
    }
    return _digest(parts, takes)


def stands_alone(image: bytes) -> bool:
    """Return whether every kernel of a cubin is the same in any other module.

    It is not where code refers to device variables or string literals: where their addresses are
    found depends on what else is in the module.
    """
    return not any(
        _OF_MODULE.fullmatch(name) or (content and _RELOCATIONS.fullmatch(name))
        for name, content in sections(image).items()
    )


def is_whole(image: bytes) -> bool:
    """Return whether a cubin has its end, which a full disk costs it without a word of nvcc's.

    Of what is no ELF file nothing is known.
    """
    if not image.startswith(b"\x7fELF"):
        return bool(image)
    try:
        header = ELFFile(io.BytesIO(image)).header
    except ELFError:
        return False
    sections_end = header.e_shoff + header.e_shnum * header.e_shentsize
    segments_end = header.e_phoff + header.e_phnum * header.e_phentsize
    return bool(max(sections_end, segments_end) <= len(image))


def arch_of(image: bytes) -> str | None:
    """Return the architecture that a cubin is for (`sm_90`), None for what is no cubin.

    It is in the file's flags: in their lowest byte until CUDA 12, since then in the second.
    """
    try:
        header = ELFFile(io.BytesIO(image)).header
    except ELFError:
        return None
    if header.e_machine != "EM_CUDA":
        return None
    shift = 8 if header.e_ident.EI_ABIVERSION >= _ABI_OF_CUDA_13 else 0
    return f"sm_{header.e_flags >> shift & 0xFF}"


def sections(image: bytes) -> dict[str, bytes]:
    """Return the contents of a cubin's sections by name; those without bytes are empty."""
    found = ELFFile(io.BytesIO(image)).iter_sections()
    return {
        section.name: b"" if section["sh_type"] == "SHT_NOBITS" else section.data()
        for section in found
    }


def _digest(parts: dict[str, bytes], takes: list[int]) -> str:
    hashed = hashlib.sha256(repr(takes).encode())
    for name, content in sorted(parts.items()):
        hashed.update(f"{name} {len(content)}\n".encode() + content)
    return hashed.hexdigest()
