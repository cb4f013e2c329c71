"""Verifies a kernel against float64 on the inputs and sizes where mistakes show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from kgen.errors import CheckFailed, CompileFailed, KernelTimeout
from kgen.evidence.far_rows import far_rows, far_shape
from kgen.evidence.inputs import ALL_INPUTS, Matrix, make
from kgen.evidence.memory import require_memory
from kgen.evidence.reference import judge
from kgen.execute import Target, name_of, observe, run, run_last_rows, source_for
from kgen.launch import serial_additions
from kgen.sources.source import Source
from kgen.specs.rules import problems_for
from kgen.specs.spec import Spec

ROWS_PER_INPUT = 3
# In order, and one warp as far as it goes: what one order of threads hides the other shows.
SCHEDULES = ("in_order", "warp_greedy")
# Longer rows prove nothing that these do not, and cost time.
MAX_COLS = 4100
# Elements by which x and y are moved off an aligned address, differently, where vectors are used.
OFFSETS = (1, 2)
Shape = tuple[int, int]


@dataclass(frozen=True)
class CheckRow:
    """The verdict on one variant at one shape: errors over all inputs; when not ok, why.

    `found_by` is what failed it: `compiler`, `fault` (of the running kernel), `result`, `memory`
    or `race`.
    """

    variant: str
    rows: int
    cols: int
    inputs: tuple[str, ...]
    ok: bool
    max_abs_error: float
    max_rel_error: float
    reason: str
    found_by: str = ""


def check(
    target: Target,
    on: str = "cpu",
    shapes: Iterable[Shape] | None = None,
    inputs: tuple[str, ...] = ALL_INPUTS,
    schedules: tuple[str, ...] = SCHEDULES,
    timeout_s: float = 60.0,
    memory: bool = False,
    races: bool = False,
) -> Iterator[CheckRow]:
    """Yield a verdict for each shape, the spec's boundary shapes and its far rows by default.

    A shape's matrix has rows of all `inputs` in turn, and is run once in each order of threads (on
    a GPU once); where vectors are used, once more with x and y aligned differently. With `memory`
    or `races` a right kernel is also observed on the CPU, on a few rows of each shape, and the
    first finding of that kind fails the row. A kernel that faults is a failed row; one that does
    not compile or takes longer than `timeout_s` seconds is not tried on further shapes. Raises
    UsageError when a shape that was asked for cannot be run.
    """
    spec = target.spec if isinstance(target, Source) else target
    orders = schedules if on == "cpu" and not spec.is_host else schedules[:1]
    for rows, cols in boundary_shapes(spec) if shapes is None else shapes:
        source = source_for(target, rows, cols)
        x = mixed_rows(inputs, rows, cols)
        row = CheckRow(name_of(target), rows, cols, inputs, True, 0.0, 0.0, "")
        try:
            for order in orders:
                y = run(source, x, on, schedule=order, timeout_s=timeout_s)
                row = _judged(row, y, x, source.spec)
            if row.ok and on == "cpu" and spec.vec_size > 1:
                y = run(source, x, schedule=orders[0], timeout_s=timeout_s, offsets=OFFSETS)
                row = _judged(row, y, x, source.spec)
            if row.ok and (memory or races):
                row = _observed(row, source, x[: observed_rows(spec)], orders[-1], memory, races)
        except CheckFailed as failure:
            yield _failed(row, failure)
            if isinstance(failure, CompileFailed | KernelTimeout):
                return
        else:
            yield row
    if shapes is None and on == "cpu":
        yield from check_far_rows(target, inputs, timeout_s)


def check_far_rows(
    target: Target, inputs: tuple[str, ...] = ALL_INPUTS, timeout_s: float = 60.0
) -> Iterator[CheckRow]:
    """Yield the verdict on the last rows of a matrix whose offsets need more than 32 bits.

    Only the blocks of these rows run, on the CPU, and only these rows are in memory. A target that
    runs on no such matrix has no verdict (far_rows.far_shape).
    """
    spec = target.spec if isinstance(target, Source) else target
    shape = far_shape(spec, boundary_cols(spec))
    if not shape:
        return
    rows, cols = shape
    x = mixed_rows(inputs, far_rows(spec), cols)
    row = CheckRow(name_of(target), rows, cols, inputs, True, 0.0, 0.0, "")
    try:
        y = run_last_rows(target, x, rows, timeout_s)
    except CheckFailed as failure:
        yield _failed(row, failure)
        return
    row = _judged(row, y, x, source_for(target, rows, cols).spec)
    yield row if row.ok else replace(row, reason=f"of the last {len(x)} rows, {row.reason}")


def _failed(row: CheckRow, failure: CheckFailed) -> CheckRow:
    return replace(
        row,
        ok=False,
        max_abs_error=np.inf,
        max_rel_error=np.inf,
        reason=str(failure),
        found_by="compiler" if isinstance(failure, CompileFailed) else "fault",
    )


def _observed(
    row: CheckRow, source: Source, x: Matrix, order: str, memory: bool, races: bool
) -> CheckRow:
    """Return the row with the first finding of an observed run, if there is one."""
    seen = observe(source, x, schedule=order)
    findings = [("memory", fault.message) for fault in seen.memory_faults if memory]
    findings += [("race", race.message) for race in seen.races if races]
    if not findings:
        return row
    kind, message = findings[0]
    return replace(row, ok=False, reason=message, found_by=kind)


def observed_rows(spec: Spec) -> int:
    """Return the rows that an observed run needs: two blocks, and a third one that is not full.

    Blocks that walk rows must get a second row too. (What threads do to memory hardly depends on
    the values, so not every input needs its rows.)
    """
    return max(2 * spec.rows_per_block, spec.grid_blocks or 0) + 1


def _judged(row: CheckRow, y: Matrix, x: Matrix, spec: Spec) -> CheckRow:
    """Return the row with the verdict on one more output."""
    verdict = judge(y, x, serial_additions(spec, row.cols), spec.op)
    place = "" if verdict.ok else f"input {row.inputs[verdict.row % len(row.inputs)]}: "
    return replace(
        row,
        ok=row.ok and verdict.ok,
        max_abs_error=max(row.max_abs_error, verdict.max_abs_error),
        max_rel_error=max(row.max_rel_error, verdict.max_rel_error),
        reason=row.reason or place + verdict.reason,
        found_by=row.found_by or ("" if verdict.ok else "result"),
    )


def mixed_rows(inputs: tuple[str, ...], rows: int, cols: int) -> Matrix:
    """Return a rows x cols matrix whose rows come from the inputs in turn.

    Raises MissingTool when this machine has not the memory for it.
    """
    require_memory(rows, cols)
    x = np.empty((rows, cols), np.float32)
    for i, name in enumerate(inputs):
        part = x[i :: len(inputs)]
        part[...] = make(name, len(part), cols)
    return x


def boundary_shapes(spec: Spec) -> list[Shape]:
    """Return shapes at and around every limit of the spec: lanes, block, vector, tile, capacity.

    Every length has a few rows of each input; lengths 1 and 257 also come with as many rows as
    make a last block that is not full, and 33 as a single row.
    """
    rows = ROWS_PER_INPUT * len(ALL_INPUTS)
    shapes = [(rows, cols) for cols in boundary_cols(spec)]
    per_block = spec.rows_per_block
    walked = spec.grid_blocks or per_block
    shapes += [(1025, 257), (1, 33), (per_block + 1, 33), (2 * walked + 1, 5), (1, 1)]
    return [shape for shape in dict.fromkeys(shapes) if not problems_for(spec, *shape)]


def boundary_cols(spec: Spec) -> list[int]:
    """Return the row lengths at and around the spec's limits."""
    vec, threads = spec.vec_size, spec.row_threads
    limits = [1, 2 * vec, 32, threads, threads * vec, 2 * threads * vec, 256, 1000]
    if spec.uses_tiles:
        limits += [spec.tile_cols, 3 * spec.tile_cols]
    if spec.in_registers and spec.items_per_thread is not None:
        limits += [spec.capacity - 1]
    around = {limit + step for limit in limits for step in (-1, 0, 1)}
    around |= set(range(1, 2 * vec + 2)) | {spec.static_cols or 1}
    return sorted(cols for cols in around if 1 <= cols <= MAX_COLS)
