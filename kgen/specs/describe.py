"""What a spec is in words: the title, requirements and launch lines of a generated file."""

from __future__ import annotations

from kgen.specs.choices import Cache, Merge, RowMap, Topology, Update
from kgen.specs.rules import MAX_DIMENSION
from kgen.specs.spec import AXES, Spec, differences, format_value
from kgen.specs.versions import VERSIONS

_ROW_MAP = {
    RowMap.HOST: "serial code for the host",
    RowMap.THREAD: "one thread per row",
    RowMap.WARP: "one warp per row",
    RowMap.BLOCK: "one block per row",
    RowMap.GRID_STRIDE: "blocks that walk the rows with grid stride",
    RowMap.GRID: "several blocks per row, one launch per phase",
}
_UPDATE = {
    Update.THREE_PASS: "three passes",
    Update.ONLINE: "online softmax",
    Update.ONLINE_SHARED: "online softmax with one exponential per element",
    Update.ONLINE_BRANCH: "online softmax with a branch",
    Update.ONLINE_TILE: "online softmax tile by tile",
}
_CACHE = {
    Cache.NONE: "",
    Cache.INPUTS_REGISTERS: "inputs kept in registers",
    Cache.EXPS_REGISTERS: "exponentials kept in registers",
    Cache.EXPS_OUTPUT: "exponentials parked in the output",
    Cache.INPUTS_SHARED: "inputs kept in shared memory",
}
_TOPOLOGY = {
    Topology.NONE: "",
    Topology.TREE: "shared-memory tree",
    Topology.WARP: "shuffles in one warp",
    Topology.WARPS_THREAD0: "shuffles, then thread 0 over the warps",
    Topology.TWO_LEVEL: "two levels of shuffles",
}
_PAIRED = " of (maximum, sum) pairs"
_VEC_SCANS = {
    "none": "",
    "first": "in the scans that reduce",
    "second": "in the writing scan",
    "both": "in all scans",
}


def title(spec: Spec) -> str:
    """Return one line that says what the kernel is."""
    own = {axis: choice.help or f"{axis} {choice}" for axis, choice in spec.own}
    parts = [own.get("row_map", _ROW_MAP[spec.row_map]), own.get("update", _UPDATE[spec.update])]
    parts += [_CACHE[spec.cache], own.get("topology", _TOPOLOGY[spec.topology])]
    parts[-1] += _PAIRED * (spec.merge is Merge.PAIRED)
    if spec.vec_size > 1:
        parts.append(f"{spec.vec_size * 4}-byte accesses {_VEC_SCANS[spec.vec_scans]}")
    if spec.prefetch:
        parts.append("the next vector fetched ahead")
    return ", ".join(part for part in parts if part)


def spec_line(spec: Spec) -> str:
    """Return every axis as `name=value`, in order, so that the file's spec can be read back."""
    return " ".join(f"{name}={format_value(spec.written[name])}" for name in AXES)


def change_words(changes: dict[str, tuple[object, object]]) -> str:
    """Return changed axes as `vec_size 1 -> 4, vec_scans none -> first`."""
    return ", ".join(
        f"{axis} {format_value(old)} -> {format_value(new)}" for axis, (old, new) in changes.items()
    )


def parent_line(parent: str | None, changes: dict[str, tuple[object, object]]) -> str:
    """Return the parent's name and what changes against it."""
    if parent is None:
        return "none"
    return f"{parent}: {change_words(changes)}"


def lineage(spec: Spec) -> tuple[str | None, dict[str, tuple[object, object]]]:
    """Return what a spec is compared with: its version's parent, or the version it overrides.

    `auto` items stand for what the named version was rendered with, so they are no difference.
    """
    version = VERSIONS[spec.version]
    own = differences(version.spec.resolve(), spec.resolve())
    if own:
        return version.name, own
    return version.parent, version.changes


def requires(spec: Spec) -> str:
    """Return what the kernel asks of the shape and of the pointers."""
    if spec.static_cols:
        length = f"cols = {spec.static_cols}"
    elif spec.in_registers:
        length = f"1 <= cols <= {spec.capacity}"
    else:
        length = f"1 <= cols <= {MAX_DIMENSION}"
    alignment = "x and y aligned to 4 bytes"
    if spec.vec_size > 1:
        alignment += f" (rows aligned to {spec.vec_size * 4} use vectors)"
    return f"rows >= 1, {length}, {alignment}"


def launch_lines(spec: Spec, symbols: tuple[str, ...]) -> list[str]:
    """Return how to launch each kernel."""
    if spec.is_host:
        return [f"{symbols[0]}(x, y, rows, cols)"]
    grid = {
        RowMap.THREAD: f"ceil(rows / {spec.threads_per_block})",
        RowMap.WARP: f"ceil(rows / {spec.rows_per_block})",
        RowMap.BLOCK: "rows",
        RowMap.GRID_STRIDE: f"min(rows, {spec.stride_blocks})",
        RowMap.GRID: f"rows * ceil(cols / {spec.tile_cols})",
    }[spec.row_map]
    shape = [f"grid = {grid}, block = {spec.threads_per_block}"]
    shape += [f"dynamic shared memory = {_shared_words(spec)} bytes"]
    if spec.row_map is not RowMap.GRID:
        return shape
    zeroed = "stats: 8 bytes a row, zeroed before every call"
    return [*symbols, "in this order, each with " + shape[0], shape[1], zeroed]


def _shared_words(spec: Spec) -> str:
    if not spec.in_shared:
        return "0"
    rows = f"{spec.rows_per_block} * " if spec.rows_per_block > 1 else ""
    cols = "cols" if spec.vec_size == 1 else f"(cols rounded up to {spec.vec_size})"
    return f"4 * {rows}{cols}"
