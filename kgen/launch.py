"""Launch plans: which kernels run, with how many blocks and threads, on which buffers."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kgen.limits import WARP_SIZE
from kgen.sources.kernels import kernels
from kgen.sources.source import Source
from kgen.specs.choice import Element
from kgen.specs.declared import FLOAT32
from kgen.specs.rules import require_valid
from kgen.specs.spec import Spec


@dataclass(frozen=True)
class Number:
    """An argument called `name`, a number of the type that `format` names as struct does."""

    name: str
    format: str
    value: int | float

    @property
    def bits(self) -> int:
        """What the argument's bytes are as an unsigned number of 64 bits."""
        return int.from_bytes(struct.pack(f"<{self.format}", self.value).ljust(8, b"\0"), "little")


@dataclass(frozen=True)
class Buffer:
    """Device memory of `nbytes` called `name`, filled with `initial` before each call.

    Without one it holds anything.
    """

    name: str
    nbytes: int
    initial: float | None = None


@dataclass(frozen=True)
class Launch:
    """One kernel launch: a one-dimensional grid of `grid` blocks of `block` threads.

    `shared_bytes` is the dynamic shared memory of a block, `cluster_size` how many blocks are
    launched as a cluster (1: none). `args` names the kernel's arguments in order, each one of `x`
    (the input), `y` (the output), `workspace` (a device pointer), `launch` (unsigned: `number`, not
    0, nor that of a launch before that was broken off), `rows` and `cols` (int), one of the plan's
    `buffers`, or one of `numbers`. Of the blocks, `skipped_blocks` first ones are not run
    (plan_last_rows). With `is_co_resident` they wait for each other, so all must run at once.
    Where `block_width` or `grid_width` is set, threads or blocks have a second index, which counts
    so many of them.
    """

    kernel: str
    grid: int
    block: int
    shared_bytes: int
    args: tuple[str, ...]
    cluster_size: int = 1
    skipped_blocks: int = 0
    is_co_resident: bool = False
    number: int = 1
    numbers: tuple[Number, ...] = ()
    block_width: int = 0
    grid_width: int = 0

    @property
    def block_shape(self) -> tuple[int, int]:
        """The block's threads in its first and second dimension."""
        width = self.block_width or self.block
        return width, self.block // width

    @property
    def grid_shape(self) -> tuple[int, int]:
        """The grid's blocks in its first and second dimension."""
        width = self.grid_width or self.grid
        return width, self.grid // width


@dataclass(frozen=True)
class LaunchPlan:
    """The launches of one softmax call on a rows x cols matrix, in stream order.

    `workspace_bytes` of device memory, set to zero before the first launch of every call, or of
    the first one alone where `keeps_workspace`, are passed where a launch names `workspace`. An
    empty matrix has no launches. `dtype` and `out_dtype` are the types of input and output. Of the
    rows, `skipped_rows` first ones are left out (plan_last_rows). `buffers` are further ones, as a
    stranger's launches have them. With `in_place` the output starts as the input.
    """

    rows: int
    cols: int
    launches: tuple[Launch, ...]
    workspace_bytes: int = 0
    keeps_workspace: bool = False
    skipped_rows: int = 0
    dtype: Element = FLOAT32
    out_dtype: Element = FLOAT32
    buffers: tuple[Buffer, ...] = ()
    in_place: bool = False


def plan(source: Source, rows: int, cols: int) -> LaunchPlan:
    """Return how to run a source on a rows x cols matrix.

    Raises UsageError when the source cannot run on that shape.
    """
    if source.contract:
        return source.contract.plan(rows, cols)
    require_valid(source.spec, rows, cols)
    return plan_valid(source.spec, source.kernels, rows, cols)


def plan_valid(spec: Spec, symbols: Sequence[str], rows: int, cols: int) -> LaunchPlan:
    """Return how to run the kernels of a spec, by their symbols, on a shape that it can run on."""
    if rows == 0 or cols == 0:
        return LaunchPlan(rows, cols, (), dtype=spec.dtype, out_dtype=spec.out_dtype)
    launches = tuple(
        Launch(
            symbol,
            spec.grid_for(rows, cols),
            spec.threads_per_block,
            spec.shared_bytes(cols),
            kernel.args,
            spec.cluster_size,
            is_co_resident=spec.runs_at_once,
        )
        for symbol, kernel in zip(symbols, kernels(spec), strict=True)
    )
    return LaunchPlan(
        rows,
        cols,
        launches,
        spec.workspace_bytes(rows),
        spec.runs_at_once,
        dtype=spec.dtype,
        out_dtype=spec.out_dtype,
    )


def plan_last_rows(source: Source, rows: int, cols: int, count: int) -> LaunchPlan:
    """Return how to run only the blocks of the last `count` rows, which the CPU executor can do.

    A block takes no row of both kinds: the other rows are a multiple of those of a block. Blocks
    that walk rows are as many as rows, so that each has one. Raises UsageError as `plan` does.
    """
    whole = plan(source, rows, cols)
    blocks = rows * source.spec.blocks_per_row
    if source.contract:
        return _last_rows(whole, source.contract.plan(rows - count, cols))
    spec = source.spec.replace(grid_blocks=blocks)  # of use only where blocks walk rows
    grid, skipped = (spec.grid_for(number, cols) for number in (rows, rows - count))
    launches = tuple(replace(each, grid=grid, skipped_blocks=skipped) for each in whole.launches)
    return replace(whole, launches=launches, skipped_rows=rows - count)


def _last_rows(whole: LaunchPlan, before: LaunchPlan) -> LaunchPlan:
    """Return a plan without the blocks of the plan of the rows before."""
    launches = tuple(
        replace(each, skipped_blocks=first.grid)
        for each, first in zip(whole.launches, before.launches, strict=True)
    )
    return replace(whole, launches=launches, skipped_rows=before.rows)


def additions_of(source: Source, cols: int) -> int:
    """Return `serial_additions` of a source; a stranger's thread may have a row to itself."""
    return cols + WARP_SIZE if source.contract else serial_additions(source.spec, cols)


def serial_additions(spec: Spec, cols: int) -> int:
    """Return how many additions one thread makes in sequence for a row: the error grows so."""
    return int(spec.serial_additions.value({"cols": cols}))
