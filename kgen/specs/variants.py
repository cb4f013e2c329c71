"""How a variant is written: `v7:items=4,threads=512`, read into a spec and written from one."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any

from kgen.errors import UsageError
from kgen.specs.axes import find_axis, parse_value
from kgen.specs.choices import Cache, Merge, RowMap, Topology, Trip, Unaligned, VecScans
from kgen.specs.rules import natural_topology, require_valid
from kgen.specs.spec import AXES, Spec, differences, format_value, short_name
from kgen.specs.versions import find_version

MAX_STEM = 60
# The axes that `follow` looks at: naming another one moves nothing.
LEADING_AXES = frozenset(
    "row_map topology update cache vec_size vec_scans tile_size threads_per_block".split()
)
# The axes that it never moves.
STAYING_AXES = frozenset("row_map update exp normalize min_blocks_per_sm static_cols".split())


def parse(text: str) -> Spec:
    """Read a variant such as `v7` or `v7:items=4,threads=512` into a spec, which may be invalid.

    An axis that is not named follows the named ones where its old value could mean nothing (see
    `follow`). Raises UsageError for an unknown version, axis or value, with the nearest known.
    """
    return apply(*settings(text))


def settings(text: str) -> tuple[Spec, dict[str, Any]]:
    """Return a variant's version and the axes that it sets. Raises UsageError as `parse` does."""
    name, _, rest = text.strip().partition(":")
    items = [item.strip() for item in rest.split(",") if item.strip()]
    changes: dict[str, Any] = {}
    for axis, value in map(_setting, items):
        if axis in changes:
            raise UsageError(f"{text!r} sets {short_name(axis)} twice")
        changes[axis] = value
    return find_version(name.strip()).spec, changes


def checked(text: str) -> Spec:
    """Read a variant as `parse` does; raise UsageError when the rules refuse it."""
    spec = parse(text)
    require_valid(spec)
    return spec


def apply(base: Spec, changes: dict[str, Any]) -> Spec:
    """Set the named axes on a version's spec and let the others follow."""
    return follow(base.replace(**changes), base, frozenset(changes))


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = (part.strip() for part in text.partition("="))
    axis = find_axis(key)
    if not equals or not value:
        raise UsageError(f"{text!r} sets nothing; write {key}=VALUE")
    return axis, parse_value(axis, value)


def follow(spec: Spec, base: Spec, named: frozenset[str]) -> Spec:
    """Move the axes that were not named to where they still mean something.

    Naming `vec=4` on a scalar version vectorises both scans; naming a row map brings a reduction
    that connects its threads; leaving a register cache drops its items. A named axis never moves.
    """
    moves = _follow_row_map(spec, base) if "row_map" in named else {}
    spec = _move(spec, moves, named)
    if spec.is_online and "update" in named and spec.keeps_exps:
        cache = Cache.INPUTS_REGISTERS if spec.in_registers else Cache.NONE
        spec = _move(spec, {"cache": cache}, named)
    if "vec_size" in named:
        scans = VecScans.NONE
        if spec.vec_size != 1:
            scans = VecScans.BOTH if base.vec_scans is VecScans.NONE else base.vec_scans
        spec = _move(spec, {"vec_scans": scans}, named)
    return _move(spec, _without_use(spec), named)


def _move(spec: Spec, moves: dict[str, Any], named: frozenset[str]) -> Spec:
    have = vars(spec)
    moves = {
        axis: value for axis, value in moves.items() if axis not in named and have[axis] != value
    }
    return spec.replace(**moves) if moves else spec


def _follow_row_map(spec: Spec, base: Spec) -> dict[str, Any]:
    moves: dict[str, Any] = {}
    if spec.is_host:
        moves["threads_per_block"] = 1
    elif base.is_host:
        moves["threads_per_block"] = 256
    placed = spec.replace(**moves)
    fits = {
        RowMap.HOST: (Topology.NONE,),
        RowMap.THREAD: (Topology.NONE,),
        RowMap.WARP: (Topology.WARP, Topology.TREE),
    }.get(spec.row_map, (Topology.TREE, Topology.TWO_LEVEL, Topology.WARPS_THREAD0))
    if spec.topology not in fits:
        moves["topology"] = natural_topology(placed)
    if spec.row_map in (RowMap.HOST, RowMap.THREAD):
        moves["merge"] = Merge.SEPARATE
    if spec.tile_size is not None and spec.row_map in (RowMap.HOST, RowMap.THREAD, RowMap.WARP):
        moves["tile_size"] = None
    if (spec.row_map is RowMap.GRID or spec.is_host) and (spec.in_registers or spec.in_shared):
        moves["cache"] = Cache.EXPS_OUTPUT if spec.keeps_exps else Cache.NONE
    if spec.is_host:
        moves |= {"vec_size": 1, "vec_scans": VecScans.NONE}
    return moves


def _without_use(spec: Spec) -> dict[str, Any]:
    """Return the neutral value of every axis that means nothing on this spec."""
    moves: dict[str, Any] = {}
    if not spec.in_registers:
        moves |= {"items_per_thread": None, "trip": Trip.STATIC}
    if not spec.uses_tiles:
        moves["tile_size"] = None
    if spec.row_map is not RowMap.GRID_STRIDE:
        moves["grid_blocks"] = None
    if spec.vec_size == 1:
        moves["unaligned"] = Unaligned.SCALAR_ROW
    if not spec.vec_second or spec.in_registers or spec.in_shared:
        moves["prefetch"] = False
    return moves


def spelling(spec: Spec, named: Collection[str] = ()) -> str:
    """Write a spec as the shortest variant that names some axes and reads back as the same spec."""
    base = find_version(spec.version).spec
    different = differences(base, spec)
    changes = {axis: getattr(spec, axis) for axis in AXES if axis in different or axis in named}
    # An axis that would follow the others away from its value in the version is named too.
    changes |= {axis: new for axis, (_, new) in differences(apply(base, changes), spec).items()}
    for axis in [axis for axis in changes if axis not in STAYING_AXES and axis not in named]:
        shorter = {name: value for name, value in changes.items() if name != axis}
        if vars(apply(base, shorter)) == vars(spec):
            changes = shorter
    if not changes:
        return spec.version
    return f"{spec.version}:" + ",".join(
        f"{short_name(axis)}={format_value(value)}" for axis, value in changes.items()
    )


def stem(variant: str) -> str:
    """Return the file stem and kernel symbol of a spelling: `softmax_v7_items4_threads512`.

    A name that would be too long to read ends in a digest of the variant instead.
    """
    name, _, rest = variant.partition(":")
    words = ["softmax", name]
    for setting in filter(None, rest.split(",")):
        key, _, value = setting.partition("=")
        words.append(key + (value if value.isdigit() else "_" + value.strip("_")))
    full = "_".join(words)
    if len(full) <= MAX_STEM:
        return full
    return f"softmax_{name}_{hashlib.sha256(rest.encode()).hexdigest()[:8]}"
