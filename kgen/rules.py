"""The rules that tell valid specs from invalid ones, each stated once.

A rule is a function that yields a `Problem` for every way in which a spec breaks it. A problem
names the values and what to change, and stands for something physically or logically impossible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kgen.errors import UsageError
from kgen.spec import (
    WARP_SIZE,
    Cache,
    Exp,
    Merge,
    RowMap,
    Spec,
    Topology,
    Trip,
    Unaligned,
    VecScans,
)

MAX_THREADS_PER_BLOCK = 1024
MAX_THREADS_PER_SM = 2048
MAX_REGISTERS_PER_THREAD = 255
REGISTERS_PER_SM = 65536
# Addresses, loop state and the reduction need registers beside the cache itself.
OTHER_REGISTERS = 16
# The most that any supported architecture lets one block have (sm_90).
MAX_SHARED_BYTES = 232_448
# Loop counters run at most one stride past the row, so this keeps them inside an int.
MAX_DIMENSION = 2**31 - 2**18
MAX_GRID_BLOCKS = 2**31 - 1


@dataclass(frozen=True)
class Problem:
    """One broken rule: the axes that clash, and a sentence that says what to change."""

    axes: tuple[str, ...]
    message: str


Rule = Callable[[Spec], Iterator[Problem]]
RULES: list[Rule] = []


def rule(check: Rule) -> Rule:
    """Register a rule on the spec alone."""
    RULES.append(check)
    return check


@rule
def threads_fit_a_block(spec: Spec) -> Iterator[Problem]:
    """A block has 1 to 1024 threads; the host has one."""
    threads = spec.threads_per_block
    if spec.is_host and threads != 1:
        yield Problem(
            ("threads_per_block", "row_map"),
            f"threads={threads} on row_map=host: the host version runs on one thread; use threads=1",
        )
    elif not 1 <= threads <= MAX_THREADS_PER_BLOCK:
        yield Problem(
            ("threads_per_block",),
            f"threads={threads} is not a block size; use 1 to {MAX_THREADS_PER_BLOCK}",
        )


@rule
def warps_are_whole(spec: Spec) -> Iterator[Problem]:
    """Shuffles and one-warp rows need whole warps."""
    threads = spec.threads_per_block
    by_warps = spec.topology in (Topology.TWO_LEVEL, Topology.WARPS_THREAD0)
    if (by_warps or spec.row_map is RowMap.WARP) and threads % WARP_SIZE:
        low = min(max(threads // WARP_SIZE, 1) * WARP_SIZE, MAX_THREADS_PER_BLOCK)
        reason = f"topology={spec.topology}" if by_warps else "row_map=warp"
        choice = f"{low} or {low + WARP_SIZE}" if low < MAX_THREADS_PER_BLOCK else str(low)
        yield Problem(
            ("threads_per_block", "topology", "row_map"),
            f"threads={threads} with {reason}: a block must be whole warps of {WARP_SIZE} threads; "
            f"use threads={choice}",
        )


@rule
def tree_halves_evenly(spec: Spec) -> Iterator[Problem]:
    """A halving tree needs a power of two."""
    threads = spec.threads_per_row
    if spec.topology is Topology.TREE and threads & (threads - 1):
        low = 1 << (threads.bit_length() - 1)
        yield Problem(
            ("threads_per_block", "topology"),
            f"threads={threads} with topology=tree: halving needs a power of two; "
            f"use threads={low}, threads={min(2 * low, 1024)} or topology=two_level",
        )


@rule
def topology_fits_row_map(spec: Spec) -> Iterator[Problem]:
    """The reduction must connect exactly the threads of a row."""
    threads, topology = spec.threads_per_row, spec.topology
    axes = ("topology", "row_map", "threads_per_block")
    if spec.row_map in (RowMap.HOST, RowMap.THREAD) and topology is not Topology.NONE:
        yield Problem(
            axes,
            f"topology={topology} with row_map={spec.row_map}: one thread has the whole row, so "
            "there is nothing to combine; use topology=none",
        )
    elif topology is Topology.NONE and threads != 1:
        yield Problem(
            axes,
            f"topology=none with {threads} threads a row: their results never meet; "
            f"use topology={natural_topology(spec)}",
        )
    elif topology is Topology.WARP and threads != WARP_SIZE:
        yield Problem(
            axes,
            f"topology=warp with threads={threads}: shuffles reach only the {WARP_SIZE} lanes of a "
            f"warp; use threads={WARP_SIZE} or topology=two_level",
        )
    elif spec.row_map is RowMap.WARP and topology not in (Topology.WARP, Topology.TREE):
        yield Problem(
            axes,
            f"topology={topology} with row_map=warp: a row has one warp, and other warps hold other "
            "rows; use topology=warp",
        )


@rule
def pairs_have_somewhere_to_meet(spec: Spec) -> Iterator[Problem]:
    """A paired merge joins the states of several threads."""
    if spec.merge is Merge.PAIRED and spec.topology is Topology.NONE:
        yield Problem(
            ("merge", "topology"),
            "merge=paired with topology=none: no two threads share a row, so no states are merged; "
            "use merge=separate",
        )


@rule
def online_keeps_inputs(spec: Spec) -> Iterator[Problem]:
    """Exponentials of an online scan refer to a maximum that still changes."""
    if spec.is_online and spec.keeps_exps:
        other = "inputs_registers" if spec.in_registers else "none"
        yield Problem(
            ("cache", "update"),
            f"cache={spec.cache} with update={spec.update}: an online scan has no exponentials to "
            "keep, since the maximum that they refer to changes until the row's end; "
            f"use cache={other} or update=three_pass",
        )


@rule
def parked_pairs_keep_their_thread(spec: Spec) -> Iterator[Problem]:
    """Exponentials parked against a thread's own maximum are rescaled by that thread."""
    parked_pairs = spec.merge is Merge.PAIRED and spec.cache is Cache.EXPS_OUTPUT
    if parked_pairs and spec.vec_scans in (VecScans.FIRST, VecScans.SECOND):
        yield Problem(
            ("vec_scans", "merge", "cache"),
            f"vec_scans={spec.vec_scans} with merge=paired and cache=exps_output: the writing scan "
            "meets exponentials of other threads and does not know the maxima they refer to; "
            "use vec_scans=both or merge=separate",
        )
    if parked_pairs and spec.row_map is RowMap.GRID:
        yield Problem(
            ("merge", "cache", "row_map"),
            "merge=paired with cache=exps_output and row_map=grid: exponentials are parked against a "
            "thread's own maximum, which the writing kernel no longer has; use merge=separate",
        )


@rule
def vectors_are_machine_words(spec: Spec) -> Iterator[Problem]:
    """The machine loads 1, 2 or 4 floats at once."""
    if spec.vec_size not in (1, 2, 4):
        yield Problem(
            ("vec_size",),
            f"vec={spec.vec_size}: the machine accesses 1, 2 or 4 floats at once; "
            f"use vec={2 if spec.vec_size == 3 else 4} or vec=4",
        )
    elif (spec.vec_size == 1) != (spec.vec_scans is VecScans.NONE):
        fix = "vec_scans=none" if spec.vec_size == 1 else "vec_scans=both"
        yield Problem(
            ("vec_size", "vec_scans"),
            f"vec={spec.vec_size} with vec_scans={spec.vec_scans}: vector accesses are used where "
            f"vec_scans says, and only there; use {fix} or vec={4 if spec.vec_size == 1 else 1}",
        )


@rule
def unaligned_needs_vectors(spec: Spec) -> Iterator[Problem]:
    """Scalar accesses are always aligned."""
    if spec.vec_size == 1 and spec.unaligned is not Unaligned.SCALAR_ROW:
        yield Problem(
            ("unaligned", "vec_size"),
            f"unaligned={spec.unaligned} with vec=1: single floats are always aligned; "
            "leave unaligned out or use vec=4",
        )


@rule
def prefetch_has_vectors_to_fetch(spec: Spec) -> Iterator[Problem]:
    """Prefetching overlaps a global vector load of the writing scan with its arithmetic."""
    if not spec.prefetch:
        return
    if not spec.vec_second:
        yield Problem(
            ("prefetch", "vec_scans"),
            f"prefetch with vec_scans={spec.vec_scans}: the writing scan loads no vectors; "
            "use vec=4,vec_scans=both",
        )
    elif spec.in_registers or spec.in_shared:
        yield Problem(
            ("prefetch", "cache"),
            f"prefetch with cache={spec.cache}: the writing scan reads nothing from global memory; "
            "use cache=none or prefetch=false",
        )


@rule
def items_need_a_register_cache(spec: Spec) -> Iterator[Problem]:
    """items_per_thread and trip describe the register cache."""
    items = spec.items_per_thread
    if not spec.in_registers and items is not None:
        yield Problem(
            ("items_per_thread", "cache"),
            f"items={items} with cache={spec.cache}: items are what a thread keeps in registers; "
            "use cache=inputs_registers or leave items out",
        )
    if not spec.in_registers and spec.trip is Trip.RUNTIME:
        yield Problem(
            ("trip", "cache"),
            f"trip=runtime with cache={spec.cache}: only loops over a register cache have a trip "
            "count to choose; use cache=inputs_registers or trip=static",
        )
    least = 0 if spec.vec_size > 1 else 1
    if spec.in_registers and items is not None and items < least:
        yield Problem(
            ("items_per_thread",),
            f"items={items} with vec={spec.vec_size} holds no element; use items={max(least, 1)}",
        )


@rule
def values_fit_the_registers(spec: Spec) -> Iterator[Problem]:
    """Values kept in registers must fit the register file."""
    limit, slots = register_limit(spec), 0
    if spec.in_registers and spec.items_per_thread is not None:
        axes, slots = ("items_per_thread", "threads_per_block", "min_blocks_per_sm"), spec.slots
    elif spec.is_tiled and not spec.in_registers:
        axes, slots = ("tile_size", "threads_per_block", "min_blocks_per_sm"), spec.tile_slots
    if slots > limit:
        what = (
            f"tile={spec.tile_cols}" if axes[0] == "tile_size" else f"items={spec.items_per_thread}"
        )
        yield Problem(
            axes,
            f"{what} x vec={spec.vec_size} keeps {slots} values a thread, and with "
            f"threads={spec.threads_per_block} a thread has registers for {max(limit, 0)}; "
            "use fewer of them a thread, or cache=none",
        )


@rule
def tiles_have_a_use(spec: Spec) -> Iterator[Problem]:
    """tile_size belongs to tile-wise updates and to rows shared by several blocks."""
    tile = spec.tile_size
    if tile is None:
        return
    if not spec.uses_tiles:
        yield Problem(
            ("tile_size", "update", "row_map"),
            f"tile={tile} with update={spec.update} and row_map={spec.row_map}: nothing goes by "
            "tiles; use update=online_tile or row_map=grid, or leave tile out",
        )
    elif tile < 1 or (spec.vec_size in (2, 4) and tile % spec.vec_size):
        yield Problem(
            ("tile_size", "vec_size"),
            f"tile={tile} with vec={spec.vec_size}: a tile is a positive multiple of the vector; "
            f"use tile={max(-(-tile // spec.vec_size), 1) * spec.vec_size}",
        )


@rule
def grid_belongs_to_grid_stride(spec: Spec) -> Iterator[Problem]:
    """Only the grid-stride row map leaves the number of blocks open."""
    grid = spec.grid_blocks
    if grid is None:
        return
    if spec.row_map is not RowMap.GRID_STRIDE:
        yield Problem(
            ("grid_blocks", "row_map"),
            f"grid={grid} with row_map={spec.row_map}: the matrix alone decides the grid; "
            "use row_map=grid_stride or leave grid out",
        )
    elif not 1 <= grid <= MAX_GRID_BLOCKS:
        yield Problem(("grid_blocks",), f"grid={grid}: use 1 to {MAX_GRID_BLOCKS} blocks")


@rule
def blocks_fit_an_sm(spec: Spec) -> Iterator[Problem]:
    """Launch bounds cannot ask for more threads than an SM has."""
    blocks = spec.min_blocks_per_sm
    if blocks is None:
        return
    most = MAX_THREADS_PER_SM // max(spec.threads_per_block, 1)
    if spec.is_host:
        yield Problem(
            ("min_blocks_per_sm", "row_map"),
            f"min_blocks={blocks} with row_map=host: there are no blocks; use min_blocks=auto",
        )
    elif not 1 <= blocks <= min(most, 32):
        yield Problem(
            ("min_blocks_per_sm", "threads_per_block"),
            f"min_blocks={blocks} with threads={spec.threads_per_block}: an SM holds at most "
            f"{MAX_THREADS_PER_SM} threads and 32 blocks; use min_blocks={min(most, 32)} or less",
        )


@rule
def kernels_share_no_registers(spec: Spec) -> Iterator[Problem]:
    """Registers and shared memory end with the kernel."""
    if spec.row_map is RowMap.GRID and (spec.in_registers or spec.in_shared):
        yield Problem(
            ("cache", "row_map"),
            f"cache={spec.cache} with row_map=grid: registers and shared memory do not outlive a "
            "kernel, and a row needs several; use cache=none or cache=exps_output",
        )


@rule
def host_has_no_device(spec: Spec) -> Iterator[Problem]:
    """Plain C++ has no vector types, caches or intrinsics of the device."""
    if not spec.is_host:
        return
    if spec.in_registers or spec.in_shared:
        yield Problem(
            ("cache", "row_map"),
            f"cache={spec.cache} with row_map=host: the host has no register file or shared memory "
            "to place a row in; use cache=none or cache=exps_output",
        )
    if spec.vec_size != 1:
        yield Problem(
            ("vec_size", "row_map"),
            f"vec={spec.vec_size} with row_map=host: plain C++ has no float{spec.vec_size}; use vec=1",
        )
    if spec.exp is Exp.FAST:
        yield Problem(
            ("exp", "row_map"),
            "exp=__expf with row_map=host: __expf is an instruction of the GPU; use exp=expf",
        )


@rule
def static_cols_is_a_length(spec: Spec) -> Iterator[Problem]:
    """A compile-time row length is a row length, and the cache must cover it."""
    cols = spec.static_cols
    if cols is None:
        return
    if not 1 <= cols <= MAX_DIMENSION:
        yield Problem(
            ("static_cols",), f"static_cols={cols}: use 1 to {MAX_DIMENSION} elements a row"
        )
    elif spec.in_registers and spec.vec_size in (1, 2, 4):
        yield from row_fits_the_registers(spec, cols)


def register_limit(spec: Spec) -> int:
    """Return how many values a thread can keep in registers, launch bounds included."""
    resident = max(spec.threads_per_block, 1) * (spec.min_blocks_per_sm or 1)
    # A warp's registers are handed out in units of 8 a thread.
    share = REGISTERS_PER_SM // resident // 8 * 8 if resident else 0
    return min(MAX_REGISTERS_PER_THREAD, share) - OTHER_REGISTERS


def natural_topology(spec: Spec) -> Topology:
    """Return the topology that always connects the threads of a row."""
    if spec.threads_per_row == 1:
        return Topology.NONE
    if spec.row_map is RowMap.WARP:
        return Topology.WARP
    return Topology.TWO_LEVEL if spec.threads_per_block % WARP_SIZE == 0 else Topology.TREE


def row_fits_the_registers(spec: Spec, cols: int) -> Iterator[Problem]:
    """A register cache must hold the whole row."""
    items, threads, vec = spec.items_per_thread, spec.threads_per_block, spec.vec_size
    needed = spec.items_for(cols)
    if items is not None and spec.capacity >= cols:
        return
    if items is None and not list(values_fit_the_registers(spec.resolve(cols))):
        return
    # Items and block size that would do, if any do.
    ways = []
    if items is not None:
        if not list(values_fit_the_registers(spec.replace(items_per_thread=needed))):
            ways.append(f"items>={needed}")
        head = f"items={items} x vec={vec} x threads={spec.threads_per_row} covers {spec.capacity}"
    else:
        head = f"items=auto would keep {needed} x vec={vec} values in each of threads={threads}"
    bigger = threads_that_hold(spec, cols)
    if bigger:
        ways.append(f"threads>={bigger}")
    elif not ways:
        shared = spec.replace(cache=Cache.INPUTS_SHARED, items_per_thread=None)
        ways.append("cache=none" if list(_row_fits_shared(shared, cols)) else "cache=inputs_shared")
    yield Problem(
        ("items_per_thread", "threads_per_block", "cache"),
        (
            f"{head} columns; cols={cols} needs {' or '.join(ways)}"
            if items is not None
            else f"{head}, more than its registers; cols={cols} needs {' or '.join(ways)}"
        ),
    )


def threads_that_hold(spec: Spec, cols: int) -> int | None:
    """Return the least power-of-two block size whose register cache holds the row, if any does."""
    if spec.threads_per_row != spec.threads_per_block:
        return None
    threads = 1 << spec.threads_per_block.bit_length()
    while threads <= MAX_THREADS_PER_BLOCK:
        wider = spec.replace(threads_per_block=threads).resolve(cols)
        if wider.capacity >= cols and not list(values_fit_the_registers(wider)):
            return threads
        threads *= 2
    return None


def problems(spec: Spec) -> list[Problem]:
    """Return every rule that the spec breaks; none means that the spec is valid."""
    return [problem for check in RULES for problem in check(spec)]


def problems_for(spec: Spec, rows: int, cols: int) -> list[Problem]:
    """Return every reason why a valid spec cannot run on a rows x cols matrix."""
    found = [
        Problem((), f"{name}={size}: use 0 to {MAX_DIMENSION}")
        for name, size in (("rows", rows), ("cols", cols))
        if not 0 <= size <= MAX_DIMENSION
    ]
    if found or rows == 0 or cols == 0:
        return found
    if spec.static_cols is not None and spec.static_cols != cols:
        found.append(
            Problem(
                ("static_cols",),
                f"static_cols={spec.static_cols} was compiled for rows of that length only; "
                f"use static_cols={cols} or leave it out",
            )
        )
    if spec.in_registers:
        found += row_fits_the_registers(spec, cols)
    return found + list(_row_fits_shared(spec, cols)) + list(_grid_fits(spec, rows, cols))


def _row_fits_shared(spec: Spec, cols: int) -> Iterator[Problem]:
    needed = shared_cache_bytes(spec, cols)
    if needed > MAX_SHARED_BYTES - static_shared_bytes(spec):
        yield Problem(
            ("cache",),
            f"cache=inputs_shared keeps {spec.rows_per_block} x {cols} floats = {needed} bytes a "
            f"block, more than the {MAX_SHARED_BYTES} bytes of shared memory that any GPU has; "
            "use cache=none",
        )


def _grid_fits(spec: Spec, rows: int, cols: int) -> Iterator[Problem]:
    if spec.row_map is RowMap.GRID:
        blocks = rows * -(-cols // spec.tile_cols)
        if blocks > MAX_GRID_BLOCKS:
            yield Problem(
                ("tile_size",),
                f"{rows} x {cols} in tiles of {spec.tile_cols} needs {blocks} blocks, more than the "
                f"{MAX_GRID_BLOCKS} of a grid; use a larger tile",
            )


def cache_stride(spec: Spec, cols: int) -> int:
    """Return the elements between two rows of the shared cache: whole vectors."""
    return -(-cols // spec.vec_size) * spec.vec_size


def shared_cache_bytes(spec: Spec, cols: int) -> int:
    """Return the dynamic shared memory of a block: its rows' inputs, if they are cached there."""
    return spec.rows_per_block * cache_stride(spec, cols) * 4 if spec.in_shared else 0


def static_shared_bytes(spec: Spec) -> int:
    """Return the bytes of static shared memory that a block's reductions take."""
    if spec.topology in (Topology.NONE, Topology.WARP):
        return 0
    values = spec.threads_per_block // (1 if spec.topology is Topology.TREE else WARP_SIZE)
    # Thread 0's walk has an array for the maximum and one for the sum; a pair is twice as large.
    doubled = spec.merge is Merge.PAIRED or spec.topology is Topology.WARPS_THREAD0
    return (8 if doubled else 4) * values


def require_valid(spec: Spec, rows: int | None = None, cols: int | None = None) -> None:
    """Raise UsageError with every broken rule's sentence unless the spec (on the shape) is valid."""
    found = problems(spec)
    if not found and rows is not None and cols is not None:
        found = problems_for(spec, rows, cols)
    if found:
        raise UsageError("; ".join(dict.fromkeys(problem.message for problem in found)))
