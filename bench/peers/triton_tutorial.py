"""Triton, the scheme of its fused-softmax tutorial: persistent programs, a whole row at a time.

As many programs as the GPU holds at once walk the rows; a row is one block of the next power of 2.
Warps and pipeline stages are the fastest of a few that suit the row length.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from triton.testing import do_bench

from kgen.errors import UsageError
from kgen.timing.peers import DeviceMatrix

from ._torch import on_stream
from ._types import NARROW, require_types

PACKAGE = "triton"

MAX_COLS = 131072
MAX_WARPS = 32
MAX_STAGES = 4

Launch = Callable[[torch.Tensor, torch.Tensor], Any]
# The launch for each shape and types met so far.
CHOSEN: dict[tuple[torch.Size, torch.dtype, torch.dtype], Launch] = {}


# Not specialised on the rows, so that the kernel which is measured for none is the one that runs.
@triton.jit(do_not_specialize=["rows"])
def walk_rows(x, y, rows, cols, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """Write every row whose number is the program's own, modulo the number of programs."""
    columns = tl.arange(0, BLOCK)
    exist = columns < cols
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        start = tl.cast(row, tl.int64) * cols
        values = tl.load(x + start + columns, mask=exist, other=-float("inf")).to(tl.float32)
        exps = tl.exp(values - tl.max(values, axis=0))
        tl.store(y + start + columns, exps / tl.sum(exps, axis=0), mask=exist)


class Configuration(NamedTuple):
    """How the kernel is compiled: warps of a program, stages of the pipeline over its rows."""

    warps: int
    stages: int


def configurations(cols: int, rows_waiting: int) -> list[Configuration]:
    """Return what to try for a row length: 8 to 32 elements a thread, with and without stages.

    Shared memory has room for `rows_waiting`.
    """
    block = triton.next_power_of_2(cols)
    warps = {min(max(block // (32 * elements), 1), MAX_WARPS) for elements in (8, 16, 32)}
    if warps == {MAX_WARPS}:
        # Half the warps have twice the registers a thread; fewer compile for minutes.
        warps.add(MAX_WARPS // 2)
    # The rows under way but for one wait in shared memory.
    stages = {1, min(MAX_STAGES, 1 + rows_waiting)}
    return [Configuration(some, depth) for some in sorted(warps) for depth in sorted(stages)]


def launch(how: Configuration, rows: int, programs: int, x: torch.Tensor, y: torch.Tensor) -> Any:
    """Walk the first `rows` rows with so many programs; return Triton's compiled kernel."""
    cols = x.shape[1]
    block = triton.next_power_of_2(cols)
    return walk_rows[(programs,)](
        x, y, rows, cols, BLOCK=block, STAGES=how.stages, num_warps=how.warps
    )


def resident(how: Configuration, x: torch.Tensor, y: torch.Tensor) -> int:
    """Return how many programs the GPU holds at once."""
    gpu = torch.cuda.get_device_properties()
    kernel = launch(how, 0, 1, x, y)
    threads = how.warps * gpu.warp_size
    limits = (
        gpu.max_threads_per_multi_processor // threads,
        gpu.regs_per_multiprocessor // (max(kernel.n_regs, 1) * threads),
        gpu.shared_memory_per_multiprocessor // max(kernel.metadata.shared, 1),
    )
    return int(max(1, min(limits)) * gpu.multi_processor_count)


def fastest(x: torch.Tensor, y: torch.Tensor) -> Launch:
    """Return the launch that takes the least time on these matrices."""
    rows, cols = x.shape
    shared = torch.cuda.get_device_properties().shared_memory_per_block_optin
    waiting = shared // (x.element_size() * triton.next_power_of_2(cols))
    launches = [
        functools.partial(launch, how, rows, min(rows, resident(how, x, y)))
        for how in configurations(cols, waiting)
    ]
    if len(launches) == 1:
        return launches[0]
    times = [do_bench(functools.partial(made, x, y), warmup=5, rep=20) for made in launches]
    return launches[times.index(min(times))]


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    """Fill `y`."""
    problem = (x.shape, x.dtype, y.dtype)
    if problem not in CHOSEN:
        CHOSEN[problem] = fastest(x, y)
    CHOSEN[problem](x, y)


def bind(x: DeviceMatrix, y: DeviceMatrix, stream: int) -> Callable[[], object]:
    """Return what issues the softmax of `x` on the stream.

    Raises UsageError for long rows, and for float64.
    """
    require_types("this kernel", NARROW, x, y)
    if x.shape[1] > MAX_COLS:
        raise UsageError(f"a row is one block of up to {MAX_COLS} columns, not {x.shape[1]}")
    return on_stream(softmax, x, y, stream)
