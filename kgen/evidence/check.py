"""Verifies a kernel against float64 on the inputs and sizes where mistakes show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kgen.errors import CheckFailed
from kgen.evidence.inputs import ALL_INPUTS, make
from kgen.evidence.reference import judge
from kgen.execute import Target, observe, run, source_for
from kgen.launch import serial_additions
from kgen.sources.source import Source
from kgen.specs.rules import problems_for
from kgen.specs.spec import RowMap, Spec
from kgen.specs.variants import spelling

ROWS_PER_INPUT = 3
# Longer rows prove nothing that these do not, and cost time.
MAX_COLS = 4100
Shape = tuple[int, int]


@dataclass(frozen=True)
class CheckRow:
    """The verdict on one variant at one shape: `errors` over all inputs, `reason` when not ok."""

    variant: str
    rows: int
    cols: int
    inputs: tuple[str, ...]
    ok: bool
    max_abs_error: float
    max_rel_error: float
    reason: str


def name_of(target: Target) -> str:
    """Return what a user calls the target: the variant, or the path of an edited file."""
    if isinstance(target, Source):
        return str(target.path or target.filename)
    return spelling(target)


def check(
    target: Target,
    on: str = "cpu",
    shapes: Iterable[Shape] | None = None,
    inputs: tuple[str, ...] = ALL_INPUTS,
    schedule: str = "in_order",
    memory: bool = False,
    races: bool = False,
) -> Iterator[CheckRow]:
    """Yield a verdict for each shape, the spec's boundary shapes by default.

    Each shape is run once, on a matrix whose rows come from all `inputs` in turn. A kernel that
    faults is a failed row. With `memory` or `races` it is also observed on the CPU, a few rows of
    each shape, and its first finding of that kind fails the row. Raises UsageError when a shape
    that was asked for cannot be run.
    """
    spec = target.spec if isinstance(target, Source) else target
    for rows, cols in boundary_shapes(spec) if shapes is None else shapes:
        row = _check_shape(target, on, (rows, cols), inputs, schedule)
        if row.ok and (memory or races):
            reason = _first_finding(target, row, schedule, memory, races)
            row = replace(row, ok=not reason, reason=reason)
        yield row


def _first_finding(target: Target, row: CheckRow, schedule: str, memory: bool, races: bool) -> str:
    """Return what an observed run of the row's shape finds first, or nothing."""
    spec = target.spec if isinstance(target, Source) else target
    x, _ = mixed_rows(row.inputs, min(row.rows, observed_rows(spec)), row.cols)
    try:
        observation = observe(target, x, schedule=schedule)
    except CheckFailed as failure:
        return str(failure)
    messages = [fault.message for fault in observation.memory_faults if memory]
    messages += [race.message for race in observation.races if races]
    return messages[0] if messages else ""


def observed_rows(spec: Spec) -> int:
    """Return the rows that an observed run needs: two blocks, and a third one that is not full.

    Blocks that walk rows must get a second row too. (What threads do to memory hardly depends on
    the values, so not every input needs its rows.)
    """
    return max(2 * spec.rows_per_block, spec.grid_blocks or 0) + 1


def _check_shape(
    target: Target, on: str, shape: Shape, inputs: tuple[str, ...], schedule: str
) -> CheckRow:
    rows, cols = shape
    x, owners = mixed_rows(inputs, rows, cols)
    source = source_for(target, rows, cols)
    try:
        y = run(source, x, on, schedule=schedule)
    except CheckFailed as failure:
        return CheckRow(name_of(target), rows, cols, inputs, False, np.inf, np.inf, str(failure))
    additions = serial_additions(source.spec, cols)
    verdicts = [
        (name, judge(y[owners == i], x[owners == i], additions)) for i, name in enumerate(inputs)
    ]
    reasons = [f"input {name}: {verdict.reason}" for name, verdict in verdicts if not verdict.ok]
    return CheckRow(
        name_of(target),
        rows,
        cols,
        inputs,
        not reasons,
        max(verdict.max_abs_error for _, verdict in verdicts),
        max(verdict.max_rel_error for _, verdict in verdicts),
        reasons[0] if reasons else "",
    )


def mixed_rows(
    inputs: tuple[str, ...], rows: int, cols: int
) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Return a rows x cols matrix whose rows come from the inputs in turn, and each row's input."""
    owners = np.arange(rows) % len(inputs)
    x = np.empty((rows, cols), np.float32)
    for i, name in enumerate(inputs):
        x[owners == i] = make(name, int(np.sum(owners == i)), cols)
    return x, owners


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
    vec, threads = spec.vec_size, spec.threads_per_row
    limits = [1, 2 * vec, 32, threads, threads * vec, 2 * threads * vec, 256, 1000]
    if spec.uses_tiles or spec.row_map is RowMap.GRID:
        limits += [spec.tile_cols, 3 * spec.tile_cols]
    if spec.in_registers and spec.items_per_thread is not None:
        limits += [spec.capacity - 1]
    around = {limit + step for limit in limits for step in (-1, 0, 1)}
    around |= set(range(1, 2 * vec + 2)) | {spec.static_cols or 1}
    return sorted(cols for cols in around if 1 <= cols <= MAX_COLS)
