"""Leaves out of a sweep the candidates whose time nobody needs, before any GPU time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kgen.launch import Launch, LaunchPlan
from kgen.specs.choice import FLOAT32
from kgen.store.measurement import Measurement, Outcome, Provenance
from kgen.timing.candidates import Candidate
from kgen.timing.protocol import Protocol
from kgen.timing.summary import blank
from kgen.toolchain import Binary, machine_code_digest
from kgen.toolchain.binary import KernelResources
from kgen.toolchain.occupancy import occupancy, sm_limits

# What a kernel spills is pruned for what it costs, and not for being there: compilers spill a word
# or two with registers to spare. So local memory may take this share of the bytes that a thread
# moves of the matrix, read once and written once. It stays in the L1 cache, which has about four
# times the bandwidth of DRAM, so that a quarter of the bytes is about a sixteenth of the time.
SPILLED_SHARE = 0.25
# As much as a thread with one element or two spends on starting and on the reduction.
LEAST_BYTES = 64


def prune(
    candidates: Sequence[Candidate], protocol: Protocol, provenance: Provenance
) -> tuple[list[Candidate], list[Measurement]]:
    """Return the candidates of a shape that are worth a time, and the rows of the others.

    What spills much, cannot run, or is the machine code of an earlier candidate is left out; what
    did not compile, or was not compiled, stays.
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

    They are: more than SPILLED_SHARE of a thread's bytes in local memory, as registers spilled or
    an array kept there; and launches that no multiprocessor of the binary's architecture can hold
    a block of. Raises UsageError for an architecture whose limits are not known.
    """
    resources = {kernel.kernel: kernel for kernel in binary.kernels}
    return [
        f"{launch.kernel} {problem}"
        for launch in plan.launches
        for kernel in [resources[launch.kernel]]
        for problem in (
            *_local_memory(kernel, _thread_bytes(plan, launch)),
            *_unlaunchable(kernel, launch, binary.arch),
        )
    ]


def _thread_bytes(plan: LaunchPlan, launch: Launch) -> int:
    """Return what a thread moves at least: its part of the matrix, in and out."""
    threads = launch.grid * launch.block
    return max(LEAST_BYTES, 2 * FLOAT32.bytes * plan.rows * plan.cols // threads)


def _local_memory(kernel: KernelResources, moved: int) -> Iterator[str]:
    """Yield what is against a kernel whose threads move so many bytes of the matrix."""
    spilled = kernel.spill_store_bytes + kernel.spill_load_bytes
    kept = 2 * kernel.stack_bytes  # written and read once
    if max(spilled, kept) <= SPILLED_SHARE * moved:
        return
    what = f"spills {spilled}" if spilled else f"keeps {kernel.stack_bytes}"
    yield f"{what} bytes a thread in local memory and moves {moved} bytes of the matrix"


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
