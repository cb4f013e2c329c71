"""Whether two sources give the same machine code: then no run can tell them apart."""

from __future__ import annotations

from kgen.errors import CompileFailed
from kgen.limits import DEFAULT_ARCH
from kgen.sources.source import Source
from kgen.toolchain import compile_cubin, machine_code_digest


def same_machine_code(one: Source, other: Source, arch: str = DEFAULT_ARCH) -> bool:
    """Return whether both sources compile to the same instructions in every kernel."""
    try:
        return _machine_code(one, arch) == _machine_code(other, arch)
    except CompileFailed:
        return False


def _machine_code(source: Source, arch: str) -> list[str]:
    binary = compile_cubin(source, arch)
    return [machine_code_digest(binary, kernel) for kernel in source.kernels]
