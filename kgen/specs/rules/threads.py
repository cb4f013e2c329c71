"""Rules on the threads of a row: how many, and how their results meet."""

from __future__ import annotations

from collections.abc import Iterator

from kgen.limits import MAX_THREADS_PER_BLOCK, MAX_THREADS_PER_SM, WARP_SIZE
from kgen.specs.choices import Merge, RowMap, Topology
from kgen.specs.rules.problem import Problem, number_rule, rule
from kgen.specs.spec import MAX_STRIDE_BLOCKS, ONE_THREAD_A_ROW, Spec


def natural_topology(spec: Spec) -> Topology:
    """Return the topology that always connects the threads of a row."""
    if spec.threads_per_row == 1:
        return Topology.NONE
    if spec.row_map is RowMap.WARP:
        return Topology.WARP
    return Topology.TWO_LEVEL if spec.threads_per_block % WARP_SIZE == 0 else Topology.TREE


def _connection(spec: Spec, *ways: str) -> str:
    """Return the given ways to connect a row's threads, and the topology that does, if one does."""
    threads, natural = spec.threads_per_row, natural_topology(spec)
    if natural is not Topology.TREE or threads & (threads - 1) == 0:
        return " or ".join([*ways, f"topology={natural}"])
    return " or ".join(ways or [f"topology=two_level,threads={max(threads // 32, 1) * 32}"])


@number_rule("threads_per_block")
def threads_fit_a_block(spec: Spec) -> Iterator[Problem]:
    """A block has 1 to 1024 threads."""
    threads = spec.threads_per_block
    if not 1 <= threads <= MAX_THREADS_PER_BLOCK:
        yield Problem(
            ("threads_per_block",),
            f"threads={threads} is not a block size; use 1 to {MAX_THREADS_PER_BLOCK}",
        )


@rule("row_map", "threads_per_block")
def host_has_one_thread(spec: Spec) -> Iterator[Problem]:
    """The host version is serial."""
    threads = spec.threads_per_block
    if spec.is_host and threads != 1:
        yield Problem(
            ("threads_per_block", "row_map"),
            f"threads={threads} on row_map=host: the host runs on one thread; use threads=1",
        )


@rule("topology", "row_map", "threads_per_block")
def warps_are_whole(spec: Spec) -> Iterator[Problem]:
    """Shuffles and one-warp rows need whole warps."""
    threads = spec.threads_per_block
    by_warps = spec.topology in (Topology.TWO_LEVEL, Topology.WARPS_THREAD0)
    if threads % WARP_SIZE and (by_warps or spec.row_map is RowMap.WARP):
        low = min(max(threads // WARP_SIZE, 1) * WARP_SIZE, MAX_THREADS_PER_BLOCK)
        reason = f"topology={spec.topology}" if by_warps else "row_map=warp"
        choice = f"{low} or {low + WARP_SIZE}" if low < MAX_THREADS_PER_BLOCK else str(low)
        yield Problem(
            ("threads_per_block", "topology", "row_map"),
            f"threads={threads} with {reason}: a block must be whole warps of {WARP_SIZE} threads; "
            f"use threads={choice}",
        )


@rule("topology", "row_map", "threads_per_block")
def tree_halves_evenly(spec: Spec) -> Iterator[Problem]:
    """A halving tree needs a power of two."""
    threads = spec.threads_per_row
    if spec.topology is Topology.TREE and threads & (threads - 1):
        low = 1 << (threads.bit_length() - 1)
        ways = [f"threads={low}"] + [f"threads={2 * low}"] * (2 * low <= MAX_THREADS_PER_BLOCK)
        ways += ["topology=two_level"] * (threads % WARP_SIZE == 0)
        yield Problem(
            ("threads_per_block", "topology"),
            f"threads={threads} with topology=tree: halving needs a power of two; "
            f"use {' or '.join(ways)}",
        )


@rule("topology", "row_map", "threads_per_block")
def topology_fits_row_map(spec: Spec) -> Iterator[Problem]:
    """The reduction must connect exactly the threads of a row."""
    threads, topology = spec.threads_per_row, spec.topology
    axes = ("topology", "row_map", "threads_per_block")
    if spec.row_map in ONE_THREAD_A_ROW and topology is not Topology.NONE:
        yield Problem(
            axes,
            f"topology={topology} with row_map={spec.row_map}: one thread has the whole row, so "
            "there is nothing to combine; use topology=none",
        )
    elif topology is Topology.NONE and threads != 1:
        yield Problem(
            axes,
            f"topology=none with {threads} threads a row: their results never meet; "
            f"use {_connection(spec)}",
        )
    elif topology is Topology.WARP and threads != WARP_SIZE:
        yield Problem(
            axes,
            f"topology=warp with threads={threads}: shuffles reach only the {WARP_SIZE} lanes of a "
            f"warp; use {_connection(spec, f'threads={WARP_SIZE}')}",
        )
    elif spec.row_map is RowMap.WARP and topology not in (Topology.WARP, Topology.TREE):
        yield Problem(
            axes,
            f"topology={topology} with row_map=warp: a row has one warp, and other warps hold "
            "other rows; use topology=warp",
        )


@rule("merge", "topology")
def pairs_have_somewhere_to_meet(spec: Spec) -> Iterator[Problem]:
    """A paired merge joins the states of several threads."""
    if spec.merge is Merge.PAIRED and spec.topology is Topology.NONE:
        yield Problem(
            ("merge", "topology"),
            "merge=paired with topology=none: no two threads share a row, so no states are merged; "
            "use merge=separate",
        )


@rule("grid_blocks", "row_map")
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
    elif not 1 <= grid <= MAX_STRIDE_BLOCKS:
        yield Problem(("grid_blocks",), f"grid={grid}: use 1 to {MAX_STRIDE_BLOCKS} blocks")


@rule("min_blocks_per_sm", "threads_per_block", "row_map")
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
