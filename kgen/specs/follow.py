"""How axes that are not named follow the named ones to where they still mean something.

Naming `vec=4` on a scalar version vectorises both scans; naming a row map brings a reduction that
connects its threads; leaving a register cache drops its items. A named axis never moves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kgen.limits import PORTABLE_CLUSTER_BLOCKS
from kgen.specs.rules.caches import cache_of_inputs, rows_at_once_are_in_registers
from kgen.specs.rules.threads import (
    is_connected,
    natural_topology,
    rows_at_once_need_no_barrier,
)
from kgen.specs.spec import Spec

# Returns where an axis of a spec goes that was derived from a base.
Move = Callable[[Spec, Spec], Any]


@dataclass(frozen=True)
class Follower:
    """An axis that moves when one of the axes `after` was named or has moved.

    Where it moves depends on these, and on the axes `reads`.
    """

    axis: str
    after: frozenset[str]
    reads: frozenset[str]
    move: Move


FOLLOWERS: list[Follower] = []


def follower(axis: str, *after: str, reads: tuple[str, ...] = ()) -> Callable[[Move], Move]:
    """Register how an axis follows others; the order of definition is the order of moves."""

    def register(move: Move) -> Move:
        FOLLOWERS.append(Follower(axis, frozenset(after), frozenset(reads), move))
        return move

    return register


def follow(spec: Spec, base: Spec, named: frozenset[str]) -> Spec:
    """Move the axes of `spec`, which sets the `named` ones on `base`."""
    changed = named
    for step in FOLLOWERS:
        if step.axis in named or changed.isdisjoint(step.after):
            continue
        value = step.move(spec, base)
        if value != getattr(spec, step.axis):
            spec = spec.replace(**{step.axis: value})
            changed = changed | {step.axis}
    return spec


@follower("out_dtype", "dtype")
def _out_dtype(spec: Spec, base: Spec) -> str:
    return spec.dtype


@follower("exp", "dtype")
def _exp(spec: Spec, base: Spec) -> str:
    return spec.exp if spec.exp_call else "expf"


@follower("row_split", "target", "blocks_per_row")
def _row_split(spec: Spec, base: Spec) -> str:
    if spec.is_host or (spec.blocks_per_row == 1 and spec.row_split.in_one_launch):
        return "none"
    shared = spec.blocks_per_row > 1 and not spec.row_split.in_one_launch
    return "cluster" if shared else spec.row_split


@follower("blocks_per_row", "target", "row_split")
def _blocks_per_row(spec: Spec, base: Spec) -> int:
    if not spec.row_split.in_one_launch:
        return 1
    fits = 1 < spec.blocks_per_row <= spec.row_split.most_blocks
    return spec.blocks_per_row if fits else PORTABLE_CLUSTER_BLOCKS


@follower("threads_per_row", "target", "row_split")
def _threads_per_row(spec: Spec, base: Spec) -> int | None:
    if spec.is_host:
        return 1
    return None if spec.row_split.whole_blocks or base.is_host else spec.threads_per_row


@follower("row_loop", "target", "row_split", "next_row")
def _row_loop(spec: Spec, base: Spec) -> str:
    if spec.is_host or spec.row_split.one_row:
        return "once"
    asks = spec.next_row.is_ahead and not spec.row_loop.repeats
    return "grid_stride" if asks else spec.row_loop


@follower("row_io", "dtype", "out_dtype", "target", "row_split")
def _row_io(spec: Spec, base: Spec) -> str:
    apart = spec.is_host or spec.row_split.whole_blocks or spec.dtype != spec.out_dtype
    return "direct" if apart else spec.row_io


@follower("threads_per_block", "target")
def _threads_per_block(spec: Spec, base: Spec) -> int:
    if spec.is_host:
        return 1
    return Spec.threads_per_block if base.is_host else spec.threads_per_block


@follower(
    "topology",
    *("target", "threads_per_row", "row_split", "blocks_per_row", "merge", "update"),
    reads=("threads_per_block",),
)
def _topology(spec: Spec, base: Spec) -> str:
    if spec.merge.by_warp and not base.merge.by_warp:  # which was named
        return natural_topology(spec, of_warps=True)
    brings_pairs = spec.merge.by_warp and not spec.is_online and not spec.row_split.kernel_per_phase
    fits = is_connected(spec) and (brings_pairs or not spec.topology.of_warps)
    return spec.topology if fits else natural_topology(spec)


@follower(
    "merge",
    *("target", "threads_per_row", "row_split", "blocks_per_row", "topology", "update"),
    reads=("threads_per_block",),
)
def _merge(spec: Spec, base: Spec) -> str:
    if spec.row_threads == 1:
        return "separate"
    if spec.topology.of_warps:
        return "by_warp"
    return "separate" if spec.merge.by_warp else spec.merge


@follower("update", "merge")
def _update(spec: Spec, base: Spec) -> str:
    return "three_pass" if spec.merge.by_warp else spec.update


@follower("cache", "op", "dtype", "target", "row_split", "update", "row_io")
def _cache(spec: Spec, base: Spec) -> str:
    cache: str = spec.cache
    too_wide = spec.cache.is_copied and spec.dtype != spec.compute
    if spec.cache.keeps_exps and (spec.is_online or not spec.op.keeps_exps or too_wide):
        cache = cache_of_inputs(spec)
    if (spec.in_registers or spec.in_shared) and (spec.is_host or spec.row_split.kernel_per_phase):
        cache = "exps_output" if spec.cache.keeps_exps and spec.op.keeps_exps else "none"
    return "none" if spec.in_chunks and spec.in_shared else cache


@follower(
    "rows_at_once",
    *("target", "threads_per_row", "row_split", "row_io", "topology", "update", "cache", "trip"),
    *("next_row",),
    reads=("threads_per_block",),
)
def _rows_at_once(spec: Spec, base: Spec) -> int:
    alone = (*rows_at_once_are_in_registers(spec), *rows_at_once_need_no_barrier(spec))
    return 1 if alone else spec.rows_at_once


@follower("row_order", "target", "row_split", "cache")
def _row_order(spec: Spec, base: Spec) -> str:
    has_parts = spec.row_split.in_one_launch and spec.in_registers
    return spec.row_order if has_parts else "interleaved"


@follower("vec_size", "dtype", "out_dtype", "target")
def _vec_size(spec: Spec, base: Spec) -> int:
    if spec.is_host or not spec.vectorises:
        return 1
    # An access of the wider type keeps its bytes.
    size = base.vec_size * base.wide.bytes // spec.wide.bytes
    return min(max(size, 1), spec.wide.vec_sizes[-1])


@follower("vec_scans", "vec_size")
def _vec_scans(spec: Spec, base: Spec) -> str:
    if spec.vec_size == 1:
        return "none"
    return base.vec_scans if base.vectorises else "both"


@follower("items_per_thread", "cache")
def _items_per_thread(spec: Spec, base: Spec) -> int | None:
    return spec.items_per_thread if spec.in_registers else None


@follower("trip", "cache")
def _trip(spec: Spec, base: Spec) -> str:
    return spec.trip if spec.in_registers else "static"


@follower(
    "tile_size",
    "target",
    "threads_per_row",
    "row_split",
    "update",
    reads=("threads_per_block",),
)
def _tile_size(spec: Spec, base: Spec) -> int | None:
    # A tile that was chosen for a block's threads is no tile for a few of them.
    narrower = spec.row_threads < spec.threads_per_block or spec.is_host
    return None if narrower or not spec.uses_tiles else spec.tile_size


@follower("grid_blocks", "row_loop")
def _grid_blocks(spec: Spec, base: Spec) -> int | None:
    return spec.grid_blocks if spec.row_loop.repeats else None


@follower("unaligned", "vec_size", "vec_scans", "cache", "row_io")
def _unaligned(spec: Spec, base: Spec) -> str:
    can_shift = spec.in_registers and spec.vec_first and spec.vec_second and not spec.in_chunks
    if not spec.vectorises or spec.cache.is_copied or (spec.unaligned.is_shifted and not can_shift):
        return "scalar_row"
    return spec.unaligned


@follower("loads", "cache", "row_io", "next_row")
def _loads(spec: Spec, base: Spec) -> str:
    can_stream = spec.in_registers and not (spec.in_chunks or spec.next_row.in_shared)
    return spec.loads if can_stream else "plain"


@follower("stores", "cache", "row_io")
def _stores(spec: Spec, base: Spec) -> str:
    return spec.stores if spec.in_registers and not spec.in_chunks else "plain"


@follower("prefetch", "vec_scans", "vec_size", "cache", "row_io")
def _prefetch(spec: Spec, base: Spec) -> bool:
    return spec.prefetch and spec.vec_second and not (spec.in_registers or spec.scans_shared)


@follower("normalize", "op")
def _normalize(spec: Spec, base: Spec) -> str:
    return spec.normalize if spec.op.normalizes else "reciprocal"


# The axes that move others, and those that never move.
LEADING_AXES = frozenset().union(*(step.after | step.reads for step in FOLLOWERS))
MOVING_AXES = frozenset(step.axis for step in FOLLOWERS)
