"""Runs a launch plan on the CPU, and raises for a kernel that breaks CUDA's rules."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgen.cpu.buffers import OUTPUT, READ_ONLY, SCRATCH, WRITABLE, Buffers, Region
from kgen.cpu.build import build
from kgen.cpu.faults import fault_of, kernel_names
from kgen.cpu.process import execute
from kgen.errors import KernelFault, LaunchRefused, UsageError
from kgen.launch import Buffer, Launch, LaunchPlan
from kgen.limits import (
    DEFAULT_ARCH,
    H200_SMS,
    MAX_CLUSTER_BLOCKS,
    MAX_GRID_BLOCKS,
    MAX_SHARED_BYTES,
    MAX_THREADS_PER_BLOCK,
)
from kgen.machine_trouble import telling_trouble
from kgen.numpy_types import numpy_dtype
from kgen.sources.source import Source
from kgen.toolchain.occupancy import occupancy

# The order in which the threads of a block run between two barriers or warp operations.
SCHEDULES = ("in_order", "reversed", "warp_greedy", "random")

# How many OS threads run the blocks of a launch, and how many CUDA threads make that worth while.
WORKERS = 2
MIN_THREADS_FOR_WORKERS = 16384

# What threads access apart is no wider.
_MAX_WORD_BYTES = 4
_UNWRITTEN = np.uint8(0xFF)  # NaN bytes


@telling_trouble()
def run(
    source: Source,
    plan: LaunchPlan,
    x: NDArray[Any],
    *,
    schedule: str = "in_order",
    timeout_s: float = 120.0,
    seed: int = 0,
    offsets: tuple[int, int] = (0, 0),
) -> NDArray[Any]:
    """Return what the plan's kernels write to y for the matrix `x`, plan.rows x plan.cols.

    `x` is C-contiguous, of the plan's type, and so is the result of its output's. The kernels get
    pointers as aligned as cudaMalloc's, moved by `offsets` elements (of x, of y); rows of NaN
    surround x, elements that no kernel writes come out as NaN, and the workspace starts as zeros.
    `schedule` (one of SCHEDULES, `random` from `seed`) orders the threads of a block. Of a plan
    that skips rows, `x` and the result are the others; the skipped ones have addresses and no
    memory, and whoever accesses them faults.

    Raises UsageError for an unsuitable `x` or an unknown schedule, CompileFailed when the compiler
    rejects the source, MissingTool when there is none, MachineTrouble when this machine lacks
    memory or the like, and KernelFault for a kernel that breaks CUDA's rules, writes outside y or
    the workspace, or runs longer than `timeout_s` seconds.
    """
    check_request(source, plan, x, schedule)
    if not plan.launches:
        return np.empty(x.shape, numpy_dtype(plan.out_dtype))
    executable = build(source)
    with matrices(plan, x, offsets) as buffers:
        job = job_text(plan, buffers, schedule, seed, _workers(plan))
        outcome = execute(executable, job, buffers.descriptor, timeout_s)
        if outcome.exit_code != 0 or outcome.timed_out:
            raise fault_of(source, plan, executable, outcome, timeout_s)
        for name in ("y", "workspace", *(buffer.name for buffer in plan.buffers)):
            _check_guards(source, plan, buffers, buffers.region(name))
        _check_kept(source, plan, buffers)
        return result(buffers, plan)


@contextmanager
def matrices(plan: LaunchPlan, x: NDArray[Any], offsets: tuple[int, int]) -> Iterator[Buffers]:
    """Give the buffers x, y and workspace as the kernels of a plan must find them."""
    buffers = Buffers()
    regions = {}
    y_role = WRITABLE if plan.in_place else OUTPUT
    for name, shift, role in (("x", offsets[0], READ_ONLY), ("y", offsets[1], y_role)):
        element = _element_bytes(plan, name)
        row_bytes = plan.cols * element
        skipped = plan.skipped_rows * row_bytes
        size = x.size * element
        regions[name] = buffers.add(name, size, row_bytes, shift * element, role, skipped)
    skipped = plan.workspace_bytes // plan.rows * plan.skipped_rows
    size = plan.workspace_bytes - skipped
    workspace = buffers.add("workspace", size, row_bytes, 0, WRITABLE, skipped)
    others = [(_add(buffers, plan, each), each) for each in plan.buffers]
    with buffers:
        given = x.reshape(-1).view(np.uint8)
        buffers.data(regions["x"])[:] = given
        buffers.data(regions["y"])[:] = given if plan.in_place else _UNWRITTEN
        for region, each in others:
            _fill(buffers.data(region), each)
        # One that is kept from call to call has what a launch left that was broken off.
        buffers.data(workspace)[:] = _UNWRITTEN if plan.keeps_workspace else 0
        yield buffers


def _element_bytes(plan: LaunchPlan, name: str) -> int:
    """Return the bytes of what a buffer is counted in: elements, or words of the workspace."""
    return {"x": plan.dtype.bytes, "y": plan.out_dtype.bytes}.get(name, _MAX_WORD_BYTES)


def _add(buffers: Buffers, plan: LaunchPlan, buffer: Buffer) -> Region:
    """Plan one of the further buffers, of which a plan that skips rows leaves their part out."""
    skipped = buffer.nbytes // plan.rows * plan.skipped_rows // _MAX_WORD_BYTES * _MAX_WORD_BYTES
    role = SCRATCH if buffer.initial is None else WRITABLE
    return buffers.add(buffer.name, buffer.nbytes - skipped, 0, 0, role, skipped)


def _fill(data: NDArray[np.uint8], buffer: Buffer) -> None:
    data[:] = _UNWRITTEN
    if buffer.initial is not None:
        whole = data.size // _MAX_WORD_BYTES * _MAX_WORD_BYTES
        data[:whole].view(np.float32)[:] = buffer.initial


def result(buffers: Buffers, plan: LaunchPlan) -> NDArray[Any]:
    """Return a copy of y."""
    y = buffers.data(buffers.region("y")).view(numpy_dtype(plan.out_dtype))
    return np.array(y.reshape(plan.rows - plan.skipped_rows, plan.cols))


def check_request(source: Source, plan: LaunchPlan, x: NDArray[Any], schedule: str) -> None:
    """Refuse what cannot be run: UsageError for the arguments, KernelFault for the launches."""
    shape = (plan.rows - plan.skipped_rows, plan.cols)
    if x.dtype != numpy_dtype(plan.dtype) or x.shape != shape or not x.flags.c_contiguous:
        raise UsageError(
            f"x is {x.dtype} {x.shape}; this plan takes a C-contiguous {plan.dtype} array {shape}"
        )
    if schedule not in SCHEDULES:
        raise UsageError(f"schedule={schedule!r} is unknown: choose one of {', '.join(SCHEDULES)}")
    for launch in plan.launches:
        _check_launch(source, launch)


def _check_launch(source: Source, launch: Launch) -> None:
    """Refuse what a CUDA launch itself refuses."""
    name = f"{source.shown_name}: kernel {launch.kernel}"
    for value, what, least, most in (
        (launch.grid, "blocks in the grid", 1, MAX_GRID_BLOCKS),
        (launch.block, "threads in a block", 1, MAX_THREADS_PER_BLOCK),
        (launch.shared_bytes, "bytes of dynamic shared memory", 0, MAX_SHARED_BYTES),
        (launch.cluster_size, "blocks in a cluster", 1, MAX_CLUSTER_BLOCKS),
    ):
        if not least <= value <= most:
            raise LaunchRefused(
                f"{name} is launched with {value} {what}; CUDA takes {least} to {most}"
            )
    if (launch.grid - launch.skipped_blocks) % launch.cluster_size:
        raise KernelFault(
            f"{name} is launched with {launch.grid} blocks, which is no multiple of its clusters "
            f"of {launch.cluster_size}"
        )
    # A kernel whose registers allow fewer blocks fails on the GPU all the same.
    per_sm = occupancy(DEFAULT_ARCH, launch.block, 0, launch.shared_bytes).blocks_per_sm
    resident = H200_SMS * per_sm
    if launch.is_co_resident and launch.grid > resident:
        raise KernelFault(
            f"{name} is launched with {launch.grid} blocks that wait for each other, and a GPU of "
            f"{H200_SMS} SMs holds at most {resident} blocks of {launch.block} threads and "
            f"{launch.shared_bytes} bytes of shared memory at once: launch fewer blocks"
        )


def job_text(plan: LaunchPlan, buffers: Buffers, schedule: str, seed: int, workers: int) -> str:
    """Return the job in the words that runtime/job.cpp reads."""
    numbers = {"rows": str(plan.rows), "cols": str(plan.cols)}
    word = min(_MAX_WORD_BYTES, plan.dtype.bytes, plan.out_dtype.bytes)
    lines = [f"schedule {schedule}", f"seed {seed}", f"workers {workers}", f"word {word}"]
    lines += buffers.job_lines()
    for launch in plan.launches:
        known = {**numbers, "launch": str(launch.number)}
        known |= {number.name: str(number.bits) for number in launch.numbers}
        arguments = " ".join(known.get(name, name) for name in launch.args)
        lines.append(
            f"launch {launch.kernel} {launch.grid} {launch.grid_shape[0]} "
            f"{launch.skipped_blocks} {launch.block} {launch.block_shape[0]} "
            f"{launch.shared_bytes} {launch.cluster_size} {launch.is_co_resident:d} "
            f"{len(launch.args)} {arguments}"
        )
    return "\n".join([*lines, "end\n"])


def _workers(plan: LaunchPlan) -> int:
    runs = [(launch.grid - launch.skipped_blocks, launch) for launch in plan.launches]
    if max(blocks * launch.block for blocks, launch in runs) < MIN_THREADS_FOR_WORKERS:
        return 1
    groups = max(
        1 if launch.is_co_resident else blocks // launch.cluster_size for blocks, launch in runs
    )
    return min(WORKERS, groups, os.cpu_count() or 1)


def _check_kept(source: Source, plan: LaunchPlan, buffers: Buffers) -> None:
    """Refuse what a later launch of the same number would take for its own."""
    if not plan.keeps_workspace:
        return
    left = np.flatnonzero(buffers.data(buffers.region("workspace")))
    if left.size:
        raise KernelFault(
            f"{source.shown_name}: {kernel_names(plan)}: left {left.size} bytes of the "
            f"workspace that are not zero, the first at byte {left[0]}; a call clears its messages"
        )


def _check_guards(source: Source, plan: LaunchPlan, buffers: Buffers, region: Region) -> None:
    byte = buffers.first_overwritten(region)
    if byte is None:
        return
    size = _element_bytes(plan, region.name)
    elements = (region.skipped + region.size) // size
    raise KernelFault(
        f"{source.shown_name}: {kernel_names(plan)}: wrote outside {region.name}, to element "
        f"{byte // size} of {elements} ({plan.rows} rows of {plan.cols})"
    )
