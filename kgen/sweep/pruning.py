"""Leaves out of a sweep the candidates whose time nobody needs, before any GPU time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kgen.launch import Launch, LaunchPlan
from kgen.store.measurement import Measurement, Outcome, Provenance
from kgen.timing.candidates import Candidate
from kgen.timing.protocol import Protocol
from kgen.timing.summary import blank
from kgen.toolchain import Binary, machine_code_digest
from kgen.toolchain.binary import KernelResources
from kgen.toolchain.occupancy import occupancy, sm_limits

# What local memory costs is the bytes of it times how often, beside those that a thread has to move
# anyway. How often is not in ptxas' report, so each spill counts once, and the stack as written and
# read once. Less than the thread's share of the matrix may pay for itself, by registers that leave
# room for more warps: only a time tells. From there on the row is as good as copied to memory and
# back, which caches in registers are there to avoid. Where a thread has next to nothing to move,
# latency is all that counts, and a sector (32 bytes) more is no reason either.
SPARED_BYTES = 32


def prune(
    candidates: Sequence[Candidate], protocol: Protocol, provenance: Provenance
) -> tuple[list[Candidate], list[Measurement]]:
    """Return the candidates of a shape that are worth a time, and the rows of the others.

    What keeps much in local memory (see `static_problems`), cannot run, or is the machine code of
    an earlier candidate is left out; what did not compile, or was not compiled, stays.
    """
    worth: list[Candidate] = []
    pruned: list[Measurement] = []
    first_with: dict[tuple[object, ...], str] = {}
    for candidate in candidates:
        if reason := _reason(candidate, first_with):
            row = blank(candidate, protocol, provenance)
            pruned.append(replace(row, outcome=Outcome.PRUNED, reason=reason))
        else:
            worth.append(candidate)
    return worth, pruned


def _reason(candidate: Candidate, first_with: dict[tuple[object, ...], str]) -> str:
    if not isinstance(candidate.binary, Binary) or candidate.plan is None:
        return ""
    if problems := static_problems(candidate.binary, candidate.plan):
        return "; ".join(problems)
    identity = _identity(candidate.binary, candidate.plan)
    twin = first_with.setdefault(identity, candidate.name)
    return "" if twin == candidate.name else f"the same machine code and launch as {twin}"


def _identity(binary: Binary, plan: LaunchPlan) -> tuple[object, ...]:
    """Return what two candidates share only if a GPU cannot tell them apart."""
    codes = (machine_code_digest(binary, kernel.kernel) for kernel in binary.kernels)
    launches = (replace(launch, kernel="") for launch in plan.launches)
    return (*codes, *launches, plan.workspace_bytes)


def static_problems(binary: Binary, plan: LaunchPlan) -> list[str]:
    """Return the reasons not to time a binary with a plan, one clause each; empty if there is none.

    They are: local memory that takes as many bytes as the matrix does (SPARED_BYTES says why), and
    launches that no multiprocessor of the binary's architecture can hold a block of. Raises
    UsageError for an architecture whose limits are not known.
    """
    resources = {kernel.kernel: kernel for kernel in binary.kernels}
    return [
        f"{launch.kernel} {problem}"
        for launch in plan.launches
        for kernel in [resources[launch.kernel]]
        for problem in (
            *_local_memory(kernel, _moved_bytes(launch, plan)),
            *_unlaunchable(kernel, launch, binary.arch),
        )
    ]


def _moved_bytes(launch: Launch, plan: LaunchPlan) -> float:
    """Return the bytes of the matrix that a thread reads or writes, each element counted once."""
    bytes_each = plan.dtype.bytes + plan.out_dtype.bytes
    return bytes_each * plan.rows * plan.cols / (launch.grid * launch.block)


def _local_memory(kernel: KernelResources, moved_bytes: float) -> Iterator[str]:
    spilled = kernel.spill_store_bytes + kernel.spill_load_bytes
    local = max(spilled, 2 * kernel.stack_bytes)
    if local >= max(moved_bytes, SPARED_BYTES):
        beside = f"{moved_bytes:.0f} of the matrix"
        yield f"moves {local} bytes a thread to and from local memory, {beside}"


def _unlaunchable(kernel: KernelResources, launch: Launch, arch: str) -> Iterator[str]:
    limits = sm_limits(arch)
    shared = kernel.static_shared_bytes + launch.shared_bytes
    most = limits.block_shared_bytes
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
