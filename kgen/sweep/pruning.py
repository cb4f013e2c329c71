"""What a compiled kernel's static facts say against timing it."""

from __future__ import annotations

from collections.abc import Iterator

from kgen.launch import Launch, LaunchPlan
from kgen.toolchain.binary import Binary, KernelResources
from kgen.toolchain.occupancy import occupancy, sm_limits


def static_problems(binary: Binary, plan: LaunchPlan) -> list[str]:
    """Return the reasons not to time a binary with a plan, one clause each; empty if there is none.

    They are: registers spilled or an array kept in local memory, where every access of it goes
    to the memory that softmax is waiting for anyway; and launches that no multiprocessor of the
    binary's architecture can hold a block of. Raises UsageError for an architecture whose limits
    are not known.
    """
    resources = {kernel.kernel: kernel for kernel in binary.kernels}
    return [
        f"{launch.kernel} {problem}"
        for launch in plan.launches
        for kernel in [resources[launch.kernel]]
        for problem in (*_local_memory(kernel), *_unlaunchable(kernel, launch, binary.arch))
    ]


def _local_memory(kernel: KernelResources) -> Iterator[str]:
    if spilled := max(kernel.spill_store_bytes, kernel.spill_load_bytes):
        yield f"spills {spilled} bytes a thread"
    elif kernel.stack_bytes:
        yield f"keeps {kernel.stack_bytes} bytes a thread in local memory"


def _unlaunchable(kernel: KernelResources, launch: Launch, arch: str) -> Iterator[str]:
    limits = sm_limits(arch)
    shared = kernel.static_shared_bytes + launch.shared_bytes
    most = limits.shared_bytes - limits.reserved_bytes
    if shared > most:
        yield (
            f"takes {shared} bytes of shared memory a block ({kernel.static_shared_bytes} static, "
            f"{launch.shared_bytes} dynamic), and {arch} has {most}"
        )
    if not occupancy(arch, launch.block, kernel.registers, 0).blocks_per_sm:
        yield (
            f"takes {kernel.registers} registers in each of {launch.block} threads, more than "
            f"a multiprocessor of {arch} has"
        )
