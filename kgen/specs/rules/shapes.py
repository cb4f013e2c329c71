"""Rules on the shape of the matrix: row lengths, capacities, grids."""

from __future__ import annotations

from collections.abc import Iterator

from kgen.limits import H200_SMS, MAX_GRID_BLOCKS, MAX_SHARED_BYTES, MAX_THREADS_PER_BLOCK
from kgen.specs.rules.caches import REGISTER_USE, values_fit_the_registers
from kgen.specs.rules.problem import SHAPE_RULES, Problem, ShapeCheck, rule, shape_rule
from kgen.specs.spec import DEFAULT_COLS, DEFAULT_ROWS, Spec

# Loop counters run at most one stride past the row, so this keeps them inside an int.
MAX_DIMENSION = 2**31 - 2**18
# The axes that decide on which shapes a spec can run.
SHAPE_READS = frozenset(
    (
        *REGISTER_USE,
        *("row_split", "row_loop", "grid_blocks", "topology", "merge", "row_io"),
    )
)


@rule(*REGISTER_USE)
def static_cols_is_a_length(spec: Spec) -> Iterator[Problem]:
    """A compile-time row length is a row length, and the cache must cover it."""
    cols = spec.static_cols
    if cols is None:
        return
    if not 1 <= cols <= MAX_DIMENSION:
        yield Problem(
            ("static_cols",), f"static_cols={cols}: use 1 to {MAX_DIMENSION} elements a row"
        )
    elif spec.in_registers:
        yield from _held_in_registers(spec, cols, "static_cols")


def problems_for(spec: Spec, rows: int, cols: int) -> list[Problem]:
    """Return every reason why a valid spec cannot run on a rows x cols matrix."""
    return [problem for _, problem in refusals_for(spec, rows, cols)]


def refusals_for(spec: Spec, rows: int, cols: int) -> Iterator[tuple[ShapeCheck, Problem]]:
    """Yield the rules that refuse the shape to a valid spec, each with its reason, one by one."""
    if not (1 <= rows <= MAX_DIMENSION and 1 <= cols <= MAX_DIMENSION):
        for problem in sizes_can_be_counted(spec, rows, cols):
            yield sizes_can_be_counted, problem
        return
    for check in SHAPE_RULES:
        for problem in check(spec, rows, cols):
            yield check, problem


def sizes_can_be_counted(spec: Spec, rows: int, cols: int) -> Iterator[Problem]:
    """Loop counters are 32-bit integers; an empty matrix is fine, and has no launch."""
    for name, size in (("rows", rows), ("cols", cols)):
        if not 0 <= size <= MAX_DIMENSION:
            message = f"{name}={size}: use 0 to {MAX_DIMENSION}, which 32-bit counters can walk"
            yield Problem((), message)


@shape_rule
def static_cols_are_the_cols(spec: Spec, rows: int, cols: int) -> Iterator[Problem]:
    """A compile-time row length fits rows of that length only."""
    if spec.static_cols is not None and spec.static_cols != cols:
        yield Problem(
            ("static_cols",),
            f"static_cols={spec.static_cols} was compiled for rows of that length only; "
            f"use static_cols={cols} or leave it out",
        )


@shape_rule
def row_fits_the_registers(spec: Spec, rows: int, cols: int) -> Iterator[Problem]:
    """A register cache must hold the whole row."""
    if spec.in_registers:
        yield from _held_in_registers(spec, cols, "cols")


def _held_in_registers(spec: Spec, cols: int, word: str) -> Iterator[Problem]:
    items, vec = spec.items_per_thread, spec.vec_size
    if items is not None and spec.capacity >= cols:
        return
    needed = spec.replace(items_per_thread=spec.items_for(cols))
    enough_registers = not list(values_fit_the_registers(needed))
    if enough_registers and items is None:
        return
    if items is None:
        head = f"items=auto would keep {needed.items_per_thread} x vec={vec} values in each of "
        head += f"threads={spec.threads_per_block}, more than its registers"
    else:
        blocks = f" x blocks_per_row={spec.blocks_per_row}" if spec.blocks_per_row > 1 else ""
        head = f"items={items} x vec={vec} x threads={spec.row_threads}{blocks} covers "
        head += f"{spec.capacity} columns"
    ways = [f"items>={needed.items_per_thread}"] if items is not None and enough_registers else []
    if bigger := threads_that_hold(spec, cols):
        ways.append(f"threads>={bigger}")
    yield Problem(
        ("items_per_thread", "threads_per_block", "cache"),
        f"{head}; {word}={cols} needs {' or '.join(ways or [_cache_that_holds(spec, cols)])}",
    )


def _cache_that_holds(spec: Spec, cols: int) -> str:
    shared = spec.replace(cache="inputs_shared", items_per_thread=None)
    now = "next_row=none," if spec.next_row.is_ahead else ""
    if spec.is_host or list(row_fits_shared_memory(shared, 1, cols)):
        return f"{now}cache=none"
    return f"{now}cache=inputs_shared"


def threads_that_hold(spec: Spec, cols: int) -> int | None:
    """Return the least power-of-two block size whose register cache holds the row, if any does."""
    if spec.row_threads != spec.threads_per_block:
        return None
    threads = 1 << spec.threads_per_block.bit_length()
    while threads <= MAX_THREADS_PER_BLOCK:
        wider = spec.replace(threads_per_block=threads).resolve(cols)
        if wider.capacity >= cols and not list(values_fit_the_registers(wider)):
            return threads
        threads *= 2
    return None


@shape_rule
def row_fits_shared_memory(spec: Spec, rows: int, cols: int) -> Iterator[Problem]:
    """Rows in shared memory are those of a block, beside what the reductions take."""
    yield from shared_memory_problems(spec, cols, MAX_SHARED_BYTES, "any GPU")


@rule(*SHAPE_READS)
def a_next_row_fits_shared_memory(spec: Spec) -> Iterator[Problem]:
    """How much of the next row a block has in shared memory is known when the items are."""
    is_known = spec.items_per_thread is not None or spec.static_cols
    if spec.waits_in_shared and is_known:
        yield from row_fits_shared_memory(spec, 1, spec.static_cols or DEFAULT_COLS)


def shared_memory_problems(spec: Spec, cols: int, most: int, gpu: str) -> Iterator[Problem]:
    """Yield why the rows of a block are more than the `most` bytes that a block has on a GPU."""
    needed = spec.shared_bytes(cols)
    if needed <= most - static_shared_bytes(spec):
        return
    if spec.waits_in_shared:
        yield Problem(
            ("next_row", "items_per_thread", "threads_per_block"),
            f"next_row={spec.next_row} keeps items={spec.items_on(cols)} x vec={spec.vec_size} x "
            f"threads={spec.threads_per_block} elements = {needed} bytes a block, more than the "
            f"{most} bytes of shared memory that {gpu} has; use next_row=none",
        )
    else:
        axis, way = ("row_io", "row_io=direct") if spec.in_chunks else ("cache", "cache=none")
        part = f" / {spec.blocks_per_row}" if spec.has_parts else ""
        yield Problem(
            (axis,),
            f"{axis}={getattr(spec, axis)} keeps {spec.rows_per_block} x {cols}{part} elements = "
            f"{needed} bytes a block, more than the {most} bytes of shared memory that {gpu} has; "
            f"use {_more_blocks(spec, cols, most)}{way}",
        )


def _more_blocks(spec: Spec, cols: int, most: int) -> str:
    """Return the least number of blocks that hold a row in their shared memory, if any does."""
    blocks = 2 * spec.blocks_per_row
    while spec.has_parts and blocks <= spec.row_split.most_blocks:
        if not list(shared_memory_problems(spec.replace(blocks_per_row=blocks), cols, most, "")):
            return f"blocks_per_row={blocks} or "
        blocks *= 2
    return ""


@shape_rule
def grid_has_enough_blocks(spec: Spec, rows: int, cols: int) -> Iterator[Problem]:
    """Where blocks share a row, a launch has more of them than rows."""
    if spec.is_host or (blocks := spec.grid_for(rows, cols)) <= MAX_GRID_BLOCKS:
        return
    axis, part, way = "blocks_per_row", f"with {spec.blocks_per_row} blocks a row", "fewer"
    if spec.uses_tiles:
        axis, part, way = "tile_size", f"in tiles of {spec.tile_cols}", "a larger tile"
    yield Problem(
        (axis,),
        f"{rows} x {cols} {part} needs {blocks} blocks, more than the {MAX_GRID_BLOCKS} of a "
        f"grid; use {way}",
    )


@shape_rule
def waiting_blocks_run_together(spec: Spec, rows: int, cols: int) -> Iterator[Problem]:
    """Blocks that wait for each other all have to be on the GPU."""
    if rows <= most_rows(spec):
        return
    blocks, resident = spec.grid_for(rows, cols), resident_blocks(spec)
    most = resident // rows
    way = f"blocks_per_row={1 << (most.bit_length() - 1)}" if most > 1 else "row_split=cluster"
    yield Problem(
        ("blocks_per_row", "row_split"),
        f"{rows} rows of blocks_per_row={spec.blocks_per_row} are {blocks} blocks, and at most "
        f"{resident} are sure to run at the same time; use {way}",
    )


def resident_blocks(spec: Spec) -> int:
    """Return how many blocks of a launch are sure to run at the same time on an H200.

    All its SMs run at least one block, or as many as launch bounds promise.
    """
    return H200_SMS * (spec.min_blocks_per_sm or 1)


def most_rows(spec: Spec) -> int:
    """Return the most rows of a launch."""
    return resident_blocks(spec) // spec.blocks_per_row if spec.runs_at_once else MAX_DIMENSION


def usual_shape(spec: Spec) -> tuple[int, int]:
    """Return the rows and columns to take when none are named: as many as usual that fit."""
    cols = spec.static_cols or DEFAULT_COLS
    if spec.in_registers and spec.items_per_thread is not None:
        cols = min(cols, spec.capacity)
    return min(DEFAULT_ROWS, most_rows(spec)), cols


def static_shared_bytes(spec: Spec) -> int:
    """Return the bytes of static shared memory that a block's reductions and copies take."""
    values = int(spec.topology.shared_values.of(spec))
    met = spec.compute_bytes * (2 if spec.merge.is_paired else 1) * values
    met += int(spec.row_split.static_bytes.of(spec))
    copied = sum(int(by.static_bytes.of(spec)) for by in (spec.row_io, spec.cache, spec.next_row))
    return met * (2 if spec.takes_turns else 1) + copied
