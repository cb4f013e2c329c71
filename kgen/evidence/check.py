"""Verifies a kernel against float64 on the inputs and sizes where mistakes show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from kgen.errors import CheckFailed, CompileFailed, KernelFault, KernelTimeout
from kgen.evidence.failures import (
    COMPILER,
    FAULT,
    MEMORY,
    RACE,
    RESULT,
    Failure,
    apart,
    causes,
    observed_failures,
)
from kgen.evidence.far_rows import far_rows, far_shape
from kgen.evidence.inputs import ALL_INPUTS, Matrix, make
from kgen.evidence.memory import require_memory
from kgen.evidence.reference import criterion, judge
from kgen.execute import Target, run, run_last_rows, source_for, target_name, target_spec
from kgen.numpy_types import numpy_dtype
from kgen.shape import Shape
from kgen.sources.source import Source
from kgen.specs.choice import Element
from kgen.specs.declared import FLOAT32
from kgen.specs.rules import problems_for
from kgen.specs.rules.shapes import most_rows
from kgen.specs.spec import Spec

ROWS_PER_INPUT = 3
# In order, and one warp as far as it goes: what one order of threads hides the other shows.
SCHEDULES = ("in_order", "warp_greedy")
# Longer rows prove nothing that these do not, and cost time.
MAX_COLS = 4100
# Blocks of a launch in which blocks go on to further rows.
WALKING_BLOCKS = 2


@dataclass(frozen=True)
class CheckRow:
    """The verdict on one variant at one shape: errors over all inputs, and what failed.

    What an observed run found comes first in `failures`; wrong results may be its effect.
    """

    variant: str
    rows: int
    cols: int
    inputs: tuple[str, ...]
    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    failures: tuple[Failure, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    @property
    def reason(self) -> str:
        """What the first failure says; empty when nothing failed."""
        return self.failures[0].message if self.failures else ""

    @property
    def found_by(self) -> str:
        """The kind of the first failure; empty when nothing failed."""
        return self.failures[0].kind if self.failures else ""


def check(
    target: Target,
    on: str = "cpu",
    shapes: Iterable[Shape] | None = None,
    inputs: tuple[str, ...] = ALL_INPUTS,
    schedules: tuple[str, ...] = SCHEDULES,
    timeout_s: float = 60.0,
    memory: bool = False,
    races: bool = False,
    diagnose: bool = False,
) -> Iterator[CheckRow]:
    """Yield a verdict for each shape, the spec's boundary shapes and its far rows by default.

    A shape's matrix has rows of all `inputs` in turn, and is run once in each order of threads (on
    a GPU once); where vectors are used, once more with x and y aligned differently, and where any
    number of blocks may walk the rows, once more with few. With `memory` or `races` the kernel is
    also observed on the CPU, on a few rows of each shape, and what is found of that kind fails the
    row. With `diagnose` a kernel that failed on the CPU is observed for what made it fail. A kernel
    that faults is a failed row; one that does not compile or takes longer than `timeout_s` seconds
    is not tried on further shapes. Raises UsageError when a shape that was asked for cannot be run.
    """
    spec = target_spec(target)
    orders = schedules if on == "cpu" and not spec.is_host else schedules[:1]
    kinds = (MEMORY,) * memory + (RACE,) * races
    for number, (rows, cols) in enumerate(boundary_shapes(spec) if shapes is None else shapes):
        source = source_for(target, rows, cols)
        used, skipped = _in_turn(inputs, rows, number)
        x = mixed_rows(used, rows, cols, spec.dtype, skipped)
        row = CheckRow(target_name(target), rows, cols, used)
        walked = replace(source, spec=walking(source.spec))
        observed = (walked, x[: observed_rows(spec)], orders[-1], timeout_s)
        try:
            for y in _outputs(source, x, on, orders, timeout_s):
                row = _judged(row, y, x, source.spec)
            if row.ok and kinds:
                row = replace(row, failures=tuple(observed_failures(*observed, kinds)))
        except CheckFailed as failure:
            row = _failed(row, failure)
            if isinstance(failure, CompileFailed | KernelTimeout):
                yield row
                return
        if row.found_by in (FAULT, RESULT) and (kinds or (diagnose and on == "cpu")):
            found = causes(*observed, (MEMORY, RACE) if diagnose else kinds)
            row = replace(row, failures=(*found, *row.failures))
        yield row
    if shapes is None and on == "cpu":
        yield from check_far_rows(target, inputs, timeout_s)


def _in_turn(inputs: tuple[str, ...], rows: int, number: int) -> tuple[tuple[str, ...], int]:
    """Return the inputs of a shape, and how many first rows of each are left out.

    Where there is no row for each, every shape has other ones, and once all had one, other rows.
    """
    if rows == 0 or rows >= len(inputs):
        return inputs, 0
    times, first = divmod(rows * number, len(inputs))
    return inputs[first:] + inputs[:first], times % ROWS_PER_INPUT


def check_far_rows(
    target: Target, inputs: tuple[str, ...] = ALL_INPUTS, timeout_s: float = 60.0
) -> Iterator[CheckRow]:
    """Yield the verdict on the last rows of a matrix whose offsets need more than 32 bits.

    Only the blocks of these rows run, on the CPU, and only these rows are in memory. A target that
    runs on no such matrix has no verdict (far_rows.far_shape).
    """
    spec = target_spec(target)
    shape = far_shape(spec, boundary_cols(spec))
    if not shape:
        return
    rows, cols = shape
    x = mixed_rows(inputs, far_rows(spec), cols, spec.dtype)
    row = CheckRow(target_name(target), rows, cols, inputs)
    try:
        y = run_last_rows(target, x, rows, timeout_s)
    except CheckFailed as failure:
        yield _failed(row, failure)
    else:
        head = f"of the last {len(x)} rows, "
        yield _judged(row, y, x, source_for(target, rows, cols).spec, head)


def _outputs(
    source: Source, x: Matrix, on: str, orders: tuple[str, ...], timeout_s: float
) -> Iterator[Matrix]:
    for order in orders:
        yield run(source, x, on, schedule=order, timeout_s=timeout_s)
    if on == "cpu" and source.spec.asks_alignment:
        places = apart(source.spec)
        yield run(source, x, schedule=orders[0], timeout_s=timeout_s, offsets=places)
    walked = replace(source, spec=walking(source.spec))
    if walked != source:
        yield run(walked, x, on, schedule=orders[-1], timeout_s=timeout_s)


def _failed(row: CheckRow, failure: CheckFailed) -> CheckRow:
    """Return the row of a kernel that gave no result."""
    kind = COMPILER if isinstance(failure, CompileFailed) else FAULT
    lines = (failure.line,) if isinstance(failure, KernelFault) and failure.line else ()
    return replace(
        row,
        max_abs_error=np.inf,
        max_rel_error=np.inf,
        failures=(*row.failures, Failure(kind, str(failure), lines)),
    )


def walking(spec: Spec) -> Spec:
    """Return the spec with so few blocks that they go on to further rows of a small matrix.

    A spec that does not leave the number of blocks open stays what it is.
    """
    is_open = spec.row_loop.repeats and spec.grid_blocks is None
    blocks = WALKING_BLOCKS * spec.blocks_per_row
    return spec.replace(grid_blocks=blocks) if is_open else spec


def walked_rows(spec: Spec) -> int:
    """Return the rows that the blocks of `walking` have at a time; 0 if blocks do not go on."""
    blocks = walking(spec).grid_blocks or 0
    return blocks // spec.blocks_per_row * spec.rows_per_block


def observed_rows(spec: Spec) -> int:
    """Return the rows that an observed run needs: two blocks, and a third one that is not full.

    Blocks that walk rows must get a second row too. (What threads do to memory hardly depends on
    the values, so not every input needs its rows.)
    """
    return max(2 * spec.rows_per_block, walked_rows(spec)) + 1


def _judged(row: CheckRow, y: Matrix, x: Matrix, spec: Spec, head: str = "") -> CheckRow:
    """Return the row with the verdict on one more output."""
    verdict = judge(y, x, criterion(spec, row.cols))
    place = f"{head}input {row.inputs[verdict.row % len(row.inputs)]}: "
    # Another order of threads that fails as well tells nothing new.
    is_new = not verdict.ok and row.ok
    return replace(
        row,
        max_abs_error=max(row.max_abs_error, verdict.max_abs_error),
        max_rel_error=max(row.max_rel_error, verdict.max_rel_error),
        failures=row.failures + (Failure(RESULT, place + verdict.reason),) * is_new,
    )


def mixed_rows(
    inputs: tuple[str, ...], rows: int, cols: int, element: Element = FLOAT32, skipped: int = 0
) -> Matrix:
    """Return a rows x cols matrix of elements whose rows come from the inputs in turn.

    The first `skipped` rows of each input are left out. Raises MissingTool when this machine has
    not the memory for it.
    """
    require_memory(rows, cols)
    x = np.empty((rows, cols), numpy_dtype(element))
    for i, name in enumerate(inputs):
        part = x[i :: len(inputs)]
        part[...] = make(name, skipped + len(part), cols, element=element)[skipped:]
    return x


def boundary_shapes(spec: Spec) -> list[Shape]:
    """Return shapes at and around every limit of the spec: lanes, block, vector, tile, capacity.

    Every length has a few rows of each input; lengths 1 and 257 also come with as many rows as
    make a last block that is not full, and 33 as a single row.
    """
    rows = min(ROWS_PER_INPUT * len(ALL_INPUTS), most_rows(spec))
    shapes = [(rows, cols) for cols in boundary_cols(spec)]
    per_block = spec.rows_per_block
    walked = walked_rows(spec) or per_block
    shapes += [(1025, 257), (1, 33), (per_block + 1, 33), (2 * walked + 1, 5), (1, 1)]
    return [shape for shape in dict.fromkeys(shapes) if not problems_for(spec, *shape)]


def boundary_cols(spec: Spec) -> list[int]:
    """Return the row lengths at and around the spec's limits."""
    vec, threads = spec.vec_size, spec.row_width
    limits = [1, 2 * vec, 32, threads, threads * vec, 2 * threads * vec, 256, 1000]
    if spec.uses_tiles:
        limits += [spec.tile_cols, 3 * spec.tile_cols]
    if spec.has_parts:
        limits += [vec * spec.blocks_per_row, 3 * vec * spec.blocks_per_row]
    if spec.in_registers and spec.items_per_thread is not None:
        limits += [spec.capacity - 1]
    around = {limit + step for limit in limits for step in (-1, 0, 1)}
    around |= set(range(1, 2 * vec + 2)) | {spec.static_cols or 1}
    return sorted(cols for cols in around if 1 <= cols <= MAX_COLS)
