"""What a spec is in words: the title, requirements and launch lines of a generated file."""

from __future__ import annotations

from kgen.limits import PORTABLE_CLUSTER_BLOCKS, WARP_SIZE
from kgen.specs.choice import MAX_ACCESS_BYTES
from kgen.specs.facts import HINT_AXES
from kgen.specs.fields import AXES, format_value
from kgen.specs.rules import MAX_DIMENSION
from kgen.specs.spec import Spec, differences
from kgen.specs.versions import VERSIONS


def title(spec: Spec) -> str:
    """Return one line that says what the kernel is."""
    reduction = " ".join(filter(None, (spec.topology.phrase, spec.merge.phrase)))
    parts = [
        _row(spec),
        f"{spec.rows_at_once} rows at once" if spec.rows_at_once > 1 else "",
        spec.row_loop.phrase,
        spec.row_io.phrase,
        spec.next_row.phrase,
        spec.op.phrase,
        " to ".join(dict.fromkeys(filter(None, (spec.dtype.phrase, spec.out_dtype.phrase)))),
        spec.update.phrase,
    ]
    parts += [spec.cache.phrase, reduction]
    if spec.vectorises:
        words = (f"{spec.vec_bytes}-byte accesses", spec.vec_scans.phrase, spec.unaligned.phrase)
        parts.append(" ".join(filter(None, words)))
    parts += [getattr(spec, axis).phrase for axis in HINT_AXES]
    if spec.prefetch:
        parts.append("the next vector fetched ahead")
    return ", ".join(filter(None, parts))


def _row(spec: Spec) -> str:
    """Return which threads work on a row."""
    if who := spec.target.phrase or spec.row_split.phrase:
        if not spec.row_split.in_one_launch:
            return who
        return ", ".join(filter(None, (f"{spec.blocks_per_row} {who}", spec.row_order.phrase)))
    threads = spec.row_threads
    if threads > WARP_SIZE and threads < spec.threads_per_block:
        return f"{threads // WARP_SIZE} warps per row"
    whole = {1: "one thread per row", WARP_SIZE: "one warp per row"}
    if spec.threads_per_row is None:
        return "one block per row"
    return whole.get(threads, f"{threads} threads per row")


def formula_lines(spec: Spec) -> list[str]:
    """Return what is computed of each row."""
    op = spec.op
    what = "x[r][c]" if op.input.text == "x" else f"{op.input.c({'x': 'x[r][c]'})}"
    return [
        f"y[r][c] = {op.output}",
        f"with x = {what}, row_max the largest x of row r and row_sum the sum of its {op.sums}",
    ]


def spec_line(spec: Spec) -> str:
    """Return every axis as `name=value`, in order, so that the file's spec can be read back."""
    return " ".join(f"{name}={format_value(getattr(spec, name))}" for name in AXES)


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
    alignment = f"x and y aligned to {max(spec.element_bytes, spec.out_dtype.bytes)} bytes"
    if spec.unaligned.is_shifted or spec.in_chunks:
        alignment += " (y is written by vectors where it is as far from a boundary of 16 as x)"
    elif spec.vectorises:
        alignment += f" (rows aligned to {min(spec.vec_bytes, MAX_ACCESS_BYTES)} use vectors)"
    arch = f", {spec.requires} or newer" if spec.requires else ""
    return f"rows >= 1, {length}, {alignment}{arch}"


def launch_lines(spec: Spec, symbols: tuple[str, ...]) -> list[str]:
    """Return how to launch each kernel."""
    if spec.is_host:
        return [f"{symbols[0]}(x, y, rows, cols)"]
    shape = [
        f"grid = {spec.grid.words}, block = {spec.threads_per_block}",
        f"dynamic shared memory = {spec.shared_formula.words} bytes",
    ]
    if spec.row_split.in_one_launch:
        return [*shape, *_meeting_lines(spec)]
    if len(symbols) == 1:
        return shape
    zeroed = f"stats: {spec.workspace_formula.words} bytes, zeroed before every call"
    return [*symbols, "in this order, each with " + shape[0], shape[1], zeroed]


def _meeting_lines(spec: Spec) -> list[str]:
    """Return what a launch needs so that the blocks of a row meet."""
    if spec.runs_at_once:
        return [
            "all blocks have to run at the same time",
            f"messages: {spec.workspace_formula.words} bytes, zeroed once, before the first launch",
            "launch: not 0, nor the number of a launch before that was broken off",
        ]
    cluster = f"clusters of {spec.blocks_per_row} blocks, which the kernel itself states"
    if spec.blocks_per_row <= PORTABLE_CLUSTER_BLOCKS:
        return [cluster]
    return [cluster, "cudaFuncAttributeNonPortableClusterSizeAllowed = 1"]
