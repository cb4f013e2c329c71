"""What a cubin says of itself: its architecture, and the machine code that tells kernels apart.

A cubin is an ELF64 file of little endian. Its sections `.text.KERNEL` and `.nv.constantN.KERNEL`
belong to one kernel; `.nv.constantN` and `.nv.global` to all of the module.
"""

from __future__ import annotations

import hashlib
import re
import struct

from kgen.toolchain.binary import Binary

_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_CUDA = 190  # the machine
_ABI_VERSION_AT, _ABI_OF_CUDA_13 = 8, 8
_WITHOUT_CONTENT = 8  # the type of sections that have a size and no bytes
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
    if len(image) < _HEADER.size:
        return False
    *_, table, _, _, _, _, size, count, _ = _HEADER.unpack_from(image)
    return bool(table + size * count <= len(image))


def arch_of(image: bytes) -> str | None:
    """Return the architecture that a cubin is for (`sm_90`), None for what is no cubin.

    It is in the file's flags: in their lowest byte until CUDA 12, since then in the second.
    """
    if len(image) < _HEADER.size or not image.startswith(b"\x7fELF"):
        return None
    machine, flags = (_HEADER.unpack_from(image)[field] for field in (1, 6))
    if machine != _CUDA:
        return None
    shift = 8 if image[_ABI_VERSION_AT] >= _ABI_OF_CUDA_13 else 0
    return f"sm_{flags >> shift & 0xFF}"


def sections(image: bytes) -> dict[str, bytes]:
    """Return the contents of a cubin's sections by name; those without bytes are empty."""
    *_, table, _, _, _, _, size, count, names_at = _HEADER.unpack_from(image)
    headers = [_SECTION.unpack_from(image, table + index * size) for index in range(count)]
    names = headers[names_at][4]
    found = {}
    for name_at, kind, _, _, offset, length, *_ in headers:
        start = names + name_at
        name = image[start : image.index(b"\0", start)].decode()
        found[name] = b"" if kind == _WITHOUT_CONTENT else image[offset : offset + length]
    return found


def _digest(parts: dict[str, bytes], takes: list[int]) -> str:
    hashed = hashlib.sha256(repr(takes).encode())
    for name, content in sorted(parts.items()):
        hashed.update(f"{name} {len(content)}\n".encode() + content)
    return hashed.hexdigest()
