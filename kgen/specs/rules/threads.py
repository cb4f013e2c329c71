"""Rules on the threads of a row: how many, and how their results meet."""

from __future__ import annotations

from collections.abc import Iterator

from kgen.limits import MAX_THREADS_PER_BLOCK, MAX_THREADS_PER_SM, WARP_SIZE
from kgen.specs.declared import choices
from kgen.specs.fields import SWEPT_NUMBERS
from kgen.specs.formula import ceil_div, is_power_of_two
from kgen.specs.rules.problem import Problem, number_rule, rule
from kgen.specs.spec import MAX_STRIDE_BLOCKS, Spec

# The axes that decide how many threads share a row.
ROW_THREADS = ("threads_per_row", "threads_per_block")
ROWS_AT_ONCE = SWEPT_NUMBERS["rows_at_once"]


def is_connected(spec: Spec) -> bool:
    """Whether the reduction combines exactly the threads of a row."""
    reaches = spec.topology.across_blocks or not spec.row_split.in_one_launch
    return reaches and bool(spec.topology.connects.of(spec))


def natural_topology(spec: Spec, of_warps: bool = False) -> str:
    """Return the first declared topology that connects the threads of a row, or the spec's own.

    `of_warps`: only those count that combine what whole warps found.
    """
    points = (spec.replace(topology=word) for word in choices("topology", spec.overlay))
    asked = (point for point in points if point.topology.of_warps or not of_warps)
    return next((point.topology for point in asked if is_connected(point)), spec.topology)


def _connection(spec: Spec) -> str:
    """Return what to set so that a row's threads are connected."""
    natural = natural_topology(spec)
    if natural != spec.topology:
        return f"topology={natural}"
    ways = [f"threads={threads}" for threads in _block_sizes_near(spec)]
    return " or ".join(ways or ["topology=two_level,threads=256"])


def _block_sizes_near(spec: Spec) -> list[int]:
    """Return the nearest block sizes below and above with which the topology connects a row."""
    threads = spec.threads_per_block
    fit = [
        size
        for size in range(1, MAX_THREADS_PER_BLOCK + 1)
        if is_connected(spec.replace(threads_per_block=size))
    ]
    return [*[size for size in fit if size < threads][-1:], *[s for s in fit if s > threads][:1]]


@number_rule("threads_per_block")
def threads_fit_a_block(spec: Spec) -> Iterator[Problem]:
    """A block has 1 to 1024 threads."""
    threads = spec.threads_per_block
    if not 1 <= threads <= MAX_THREADS_PER_BLOCK:
        yield Problem(
            ("threads_per_block",),
            f"threads={threads} is not a block size; use 1 to {MAX_THREADS_PER_BLOCK}",
        )


@number_rule("threads_per_row")
def a_row_has_part_of_a_warp_or_whole_warps(spec: Spec) -> Iterator[Problem]:
    """Part of a warp is a power of two of its lanes."""
    threads = spec.threads_per_row
    if threads is None:
        return
    part = 1 <= threads <= WARP_SIZE and is_power_of_two(threads)
    if not part and (threads % WARP_SIZE or not 1 <= threads <= MAX_THREADS_PER_BLOCK):
        yield Problem(
            ("threads_per_row",),
            f"threads_per_row={threads}: a row has 1, 2, 4, 8, 16 or 32 threads, or whole warps; "
            "use one of these, or auto for all threads of the block",
        )


@rule(*ROW_THREADS)
def rows_divide_the_block(spec: Spec) -> Iterator[Problem]:
    """A block has a whole number of rows at a time."""
    threads, row_threads = spec.threads_per_block, spec.row_threads
    if threads % row_threads:
        low = max(threads // row_threads, 1) * row_threads
        choice = f"{low} or {low + row_threads}" if low < threads else str(low)
        yield Problem(
            ROW_THREADS,
            f"threads={threads} with threads_per_row={row_threads}: a block has whole rows; "
            f"use threads={choice}",
        )


@rule("target", "row_split", "blocks_per_row", "row_loop", *ROW_THREADS)
def host_has_one_thread(spec: Spec) -> Iterator[Problem]:
    """The host version is serial."""
    blocks = spec.blocks_per_row
    asked = [
        (f"threads={spec.threads_per_block}", "threads=1", spec.threads_per_block != 1),
        (f"row_split={spec.row_split}", "row_split=none", spec.row_split.whole_blocks),
        (f"blocks_per_row={blocks}", "blocks_per_row=1", blocks != 1),
        (f"row_loop={spec.row_loop}", "row_loop=once", spec.row_loop.repeats),
    ]
    wrong = [(given, serial) for given, serial, is_wrong in asked if is_wrong]
    if spec.is_host and wrong:
        given, serial = (",".join(words) for words in zip(*wrong, strict=True))
        yield Problem(
            (*ROW_THREADS, "row_split", "blocks_per_row", "row_loop", "target"),
            f"{given} with target=host: the host runs on one thread, row after row; use {serial} "
            "or target=device",
        )


@rule("row_split", "row_loop", *ROW_THREADS)
def split_rows_have_whole_blocks(spec: Spec) -> Iterator[Problem]:
    """Where blocks share a row, each of them works on one row's part at a time."""
    if not spec.row_split.whole_blocks:
        return
    if spec.row_threads != spec.threads_per_block:
        yield Problem(
            ("threads_per_row", "row_split"),
            f"threads_per_row={spec.row_threads} with row_split={spec.row_split}: a block has all "
            "its threads on its part of a row; use threads_per_row=auto",
        )
    if spec.row_loop.repeats and spec.row_split.one_row:
        yield Problem(
            ("row_loop", "row_split"),
            f"row_loop={spec.row_loop} with row_split={spec.row_split}: every part of a row has a "
            "block of its own; use row_loop=once",
        )


@number_rule("blocks_per_row")
def blocks_of_a_row_are_a_power_of_two(spec: Spec) -> Iterator[Problem]:
    """What the blocks of a row found is combined by halves."""
    blocks = spec.blocks_per_row
    most = max(choice.most_blocks for choice in choices("row_split", spec.overlay).values())  # type: ignore[attr-defined]
    if not (1 <= blocks <= most and is_power_of_two(blocks)):
        yield Problem(
            ("blocks_per_row",), f"blocks_per_row={blocks}: use a power of two from 1 to {most}"
        )


@rule("target", "row_split", "blocks_per_row")
def blocks_share_rows_in_one_launch(spec: Spec) -> Iterator[Problem]:
    """blocks_per_row belongs to the ways in which blocks meet while they run."""
    blocks, most = spec.blocks_per_row, spec.row_split.most_blocks
    if not spec.row_split.in_one_launch:
        if blocks != 1 and not spec.is_host:
            yield Problem(
                ("blocks_per_row", "row_split"),
                f"blocks_per_row={blocks} with row_split={spec.row_split}: blocks that share a row "
                "have to meet; use row_split=cluster or blocks_per_row=1",
            )
    elif not 2 <= blocks <= most:
        yield Problem(
            ("blocks_per_row", "row_split"),
            f"blocks_per_row={blocks} with row_split={spec.row_split}: use a power of two from 2 "
            f"to {most}",
        )


@rule("row_split", "blocks_per_row", "threads_per_block")
def every_message_has_a_thread(spec: Spec) -> Iterator[Problem]:
    """A thread of a co-resident block sends to one block and receives from it."""
    blocks, threads = spec.blocks_per_row, spec.threads_per_block
    if spec.runs_at_once and threads < blocks:
        yield Problem(
            ("threads_per_block", "blocks_per_row"),
            f"threads={threads} with blocks_per_row={blocks}: a block has a thread for the message "
            f"of each block of its row; use threads={blocks} or more",
        )


@rule("topology", "merge", "update", "row_split")
def warps_bring_pairs(spec: Spec) -> Iterator[Problem]:
    """What a warp's lanes know alike goes to a reduction of warps, and after three passes."""
    if spec.topology.of_warps != spec.merge.by_warp:
        yield Problem(
            ("topology", "merge"),
            f"topology={spec.topology} with merge={spec.merge}: one is for results of whole "
            "warps, the other for those of threads; use topology=all_warps,merge=by_warp or "
            "neither of them",
        )
    elif spec.merge.by_warp and spec.row_split.kernel_per_phase:
        yield Problem(
            ("merge", "row_split"),
            f"merge={spec.merge} with row_split={spec.row_split}: every phase is a kernel, and the "
            "next one does not know a warp's maximum; use merge=separate,topology=two_level",
        )
    elif spec.merge.by_warp and spec.is_online:
        yield Problem(
            ("merge", "update"),
            f"merge={spec.merge} with update={spec.update}: a warp sums against its maximum when "
            "it has that; use update=three_pass",
        )


@rule("topology", "target", "row_split", "blocks_per_row", *ROW_THREADS)
def reduction_connects_the_row(spec: Spec) -> Iterator[Problem]:
    """The reduction must connect exactly the threads of a row."""
    if is_connected(spec):
        return
    threads = f"{spec.row_threads} threads"
    if spec.row_threads == 1:
        threads, reason = "one thread", "it has the whole row, so there is nothing to combine"
    elif spec.row_split.in_one_launch and not spec.topology.across_blocks:
        threads, reason = f"{spec.row_width} threads", "it does not reach other blocks"
    elif is_connected(spec.replace(threads_per_row=1)):
        reason = "their results never meet"
    else:
        reason = spec.topology.limit
    yield Problem(
        ("topology", *ROW_THREADS),
        f"topology={spec.topology} with {threads} a row, threads={spec.threads_per_block} a block: "
        f"{reason}; use {_connection(spec)}",
    )


@number_rule("rows_at_once")
def rows_at_once_are_few(spec: Spec) -> Iterator[Problem]:
    """What hides the latency of loads is a few of them."""
    if spec.rows_at_once not in ROWS_AT_ONCE:
        yield Problem(("rows_at_once",), f"rows_at_once={spec.rows_at_once}: use 1, 2 or 4")


@rule("rows_at_once", "topology", "row_split", *ROW_THREADS)
def rows_at_once_need_no_barrier(spec: Spec) -> Iterator[Problem]:
    """Their reductions follow each other; a row of several warps has loads enough in flight."""
    if spec.rows_at_once == 1:
        return
    is_reduced_apart = spec.row_threads <= WARP_SIZE and spec.topology.reusable
    if not is_reduced_apart or spec.row_split.whole_blocks:
        yield Problem(
            ("rows_at_once", "topology", "row_split", *ROW_THREADS),
            f"rows_at_once={spec.rows_at_once} with threads_per_row={spec.row_threads}, "
            f"topology={spec.topology} and row_split={spec.row_split}: several rows at once are "
            "for the lanes of a warp, which meet by shuffles; use rows_at_once=1 or "
            "threads_per_row=32,topology=warp,row_split=none",
        )


@rule("update", *ROW_THREADS)
def tiles_are_reduced_by_all(spec: Spec) -> Iterator[Problem]:
    """Every tile ends in a block barrier, which groups without a row would not meet."""
    if spec.is_tiled and WARP_SIZE < spec.row_threads < spec.threads_per_block:
        yield Problem(
            ("threads_per_row", "update"),
            f"threads_per_row={spec.row_threads} of threads={spec.threads_per_block} with "
            f"update={spec.update}: groups past the last row would miss the barriers of a tile; "
            "use threads_per_row=auto or 32",
        )


@rule("merge", "target", *ROW_THREADS)
def pairs_have_somewhere_to_meet(spec: Spec) -> Iterator[Problem]:
    """A paired merge joins the states of several threads."""
    if spec.merge.is_paired and spec.row_threads == 1:
        yield Problem(
            ("merge", *ROW_THREADS),
            f"merge={spec.merge} with threads_per_row=1: no two threads share a row, so no states "
            "are merged; use merge=separate",
        )


@rule("grid_blocks", "row_loop", "blocks_per_row", "rows_at_once", *ROW_THREADS)
def grid_belongs_to_a_row_loop(spec: Spec) -> Iterator[Problem]:
    """Only blocks that go on to further rows leave their number open."""
    grid = spec.grid_blocks
    if grid is None:
        return
    most = MAX_STRIDE_BLOCKS // spec.rows_per_block
    if not spec.row_loop.repeats:
        yield Problem(
            ("grid_blocks", "row_loop"),
            f"grid={grid} with row_loop={spec.row_loop}: the matrix alone decides the grid; "
            "use row_loop=grid_stride or leave grid out",
        )
    elif not 1 <= grid <= most:
        yield Problem(("grid_blocks",), f"grid={grid}: use 1 to {most} blocks")
    elif grid % (blocks := spec.blocks_per_row):
        yield Problem(
            ("grid_blocks", "blocks_per_row"),
            f"grid={grid} with blocks_per_row={blocks}: the grid has whole rows; "
            f"use grid={ceil_div(grid, blocks) * blocks}",
        )


@rule("min_blocks_per_sm", "threads_per_block", "target")
def blocks_fit_an_sm(spec: Spec) -> Iterator[Problem]:
    """Launch bounds cannot ask for more threads than an SM has."""
    blocks = spec.min_blocks_per_sm
    if blocks is None:
        return
    most = MAX_THREADS_PER_SM // max(spec.threads_per_block, 1)
    if spec.is_host:
        yield Problem(
            ("min_blocks_per_sm", "target"),
            f"min_blocks={blocks} with target=host: there are no blocks; use min_blocks=auto",
        )
    elif not 1 <= blocks <= min(most, 32):
        yield Problem(
            ("min_blocks_per_sm", "threads_per_block"),
            f"min_blocks={blocks} with threads={spec.threads_per_block}: an SM holds at most "
            f"{MAX_THREADS_PER_SM} threads and 32 blocks; use min_blocks={min(most, 32)} or less",
        )
