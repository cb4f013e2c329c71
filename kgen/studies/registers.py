"""What the report says its compiler gave to kernels, beside what nvcc gives today."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kgen.errors import KgenError

ARCH = "sm_75"


@dataclass(frozen=True)
class Resources:
    """What a kernel takes: registers and stack a thread, shared memory a block, occupancy in %.

    None is what is not known.
    """

    registers: int | None = None
    stack_bytes: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    occupancy: float | None = None


@dataclass(frozen=True)
class Compiled:
    """A variant for rows of `cols`: what the report gives, and what was compiled here.

    Without an `own` there is the reason.
    """

    variant: str
    cols: int
    reported: Resources
    own: Resources | None = None
    reason: str = ""


# The report's compiler is that of CUDA 12.4, and its options are -O2.
REPORTED = (
    Compiled("v3", 16384, Resources(registers=161, occupancy=25)),
    Compiled("v3:threads=512", 16384, Resources(registers=89, occupancy=50)),
    # The report gives no length for it; 16 bytes are the four values a thread has of 1024.
    Compiled("v3:trip=runtime", 1024, Resources(stack_bytes=16)),
    Compiled("v4", 16384, Resources(registers=20)),
    Compiled("v5", 4096, Resources(registers=20, shared_bytes=272)),
    Compiled("v7", 4096, Resources(registers=41, stack_bytes=0, spill_bytes=0)),
    Compiled("v8", 4096, Resources(registers=34, shared_bytes=0)),
)


def compile_reported() -> tuple[Compiled, ...]:
    """Return the report's kernels, compiled for its architecture; a reason where that fails."""
    return tuple(_compile(row) for row in REPORTED)


def _compile(row: Compiled) -> Compiled:
    from kgen.execute import find_target, source_for
    from kgen.outputs.build import kernel_reports
    from kgen.toolchain import compile_cubin

    try:
        source = source_for(find_target(row.variant), 1, row.cols)
        (kernel,) = kernel_reports(source, compile_cubin(source, ARCH), row.cols)
    except KgenError as error:
        return replace(row, reason=str(error))
    own = Resources(
        kernel.registers,
        kernel.stack_bytes,
        kernel.spill_store_bytes + kernel.spill_load_bytes,
        kernel.static_shared_bytes,
        100 * kernel.occupancy,
    )
    return replace(row, own=own)
