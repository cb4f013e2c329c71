"""What a compilation yields: the cubin and the resources of its kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class KernelResources:
    """What ptxas reports of one kernel: registers and local memory a thread, shared memory a block.

    `stack_bytes` is the kernel's stack frame, which spilled registers are a part of; an array in
    local memory shows up there without any spill. `static_shared_bytes` leaves out the dynamic
    shared memory of a launch and what the driver reserves.
    """

    kernel: str
    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    static_shared_bytes: int


@dataclass(frozen=True)
class Binary:
    """One compiled source: the cubin `image` for `arch` (`sm_90`), which also lies at `path`.

    `kernels` follows the order of the source's `kernels`; the cubin has other kernels as well where
    sources were compiled together. `log` has the compiler's warnings; it is
    empty when there were none.
    """

    path: Path
    image: bytes = field(repr=False)
    arch: str
    kernels: tuple[KernelResources, ...]
    log: str
