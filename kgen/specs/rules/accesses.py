"""Rules on how a row is read: vectors, prefetching, tiles."""

from __future__ import annotations

from collections.abc import Iterator

from kgen.specs.choice import MAX_ACCESS_BYTES
from kgen.specs.facts import HINT_AXES
from kgen.specs.rules.problem import Problem, number_rule, rule
from kgen.specs.spec import Spec

MAX_TILE_SIZE = 2**18


@number_rule("vec_size", "dtype", "out_dtype")
def vectors_are_machine_words(spec: Spec) -> Iterator[Problem]:
    """The widest access has 16 bytes."""
    sizes = spec.narrow.vec_sizes
    if spec.vec_size not in sizes:
        yield Problem(
            ("vec_size", "dtype"),
            f"vec={spec.vec_size}: the machine accesses {', '.join(map(str, sizes[:-1]))} or "
            f"{sizes[-1]} elements of {spec.narrow} at once; "
            f"use vec={min(sizes, key=lambda size: abs(size - spec.vec_size))}",
        )


@number_rule("tile_size")
def tiles_are_row_parts(spec: Spec) -> Iterator[Problem]:
    """Counters run at most one tile past the row, and must stay inside an int."""
    if spec.tile_size is not None and not 1 <= spec.tile_size <= MAX_TILE_SIZE:
        yield Problem(("tile_size",), f"tile={spec.tile_size}: use 1 to {MAX_TILE_SIZE} columns")


@rule("vec_size", "vec_scans")
def vectors_are_used_somewhere(spec: Spec) -> Iterator[Problem]:
    """Vector accesses and the scans that use them go together."""
    if spec.vectorises == (spec.vec_first or spec.vec_second):
        return
    fix = "vec_scans=none" if spec.vec_size == 1 else "vec_scans=both or vec=1"
    if spec.vec_size == 1 and not spec.is_host:
        fix += " or vec=4"
    yield Problem(
        ("vec_size", "vec_scans"),
        f"vec={spec.vec_size} with vec_scans={spec.vec_scans}: vector accesses are used where "
        f"vec_scans says, and only there; use {fix}",
    )


@rule("unaligned", "vec_size")
def unaligned_needs_vectors(spec: Spec) -> Iterator[Problem]:
    """Scalar accesses are always aligned."""
    if spec.vec_size == 1 and not spec.unaligned.whole_row:
        yield Problem(
            ("unaligned", "vec_size"),
            f"unaligned={spec.unaligned} with vec=1: single elements are always aligned; "
            "leave unaligned out or use vec=4",
        )


@rule("unaligned", "cache", "vec_scans")
def shifted_rows_are_in_registers(spec: Spec) -> Iterator[Problem]:
    """Masked vectors are read once, into registers, and written from there."""
    if spec.unaligned.is_shifted and not (spec.in_registers and spec.vec_first and spec.vec_second):
        yield Problem(
            ("unaligned", "cache", "vec_scans"),
            f"unaligned={spec.unaligned} with cache={spec.cache} and vec_scans={spec.vec_scans}: "
            "rows are shifted on their way into registers; use cache=inputs_registers,vec_scans="
            "both or unaligned=scalar_groups",
        )


@rule(*HINT_AXES, "cache", "row_io", "next_row")
def streamed_rows_come_by_once(spec: Spec) -> Iterator[Problem]:
    """A hint says that nobody comes back: rows on their way to registers, and back to memory."""
    goes_straight = spec.in_registers and not spec.in_chunks
    for axis, choice in spec.hints.items():
        if not goes_straight:
            yield Problem(
                (axis, "cache", "row_io"),
                f"{axis}={choice} with cache={spec.cache} and row_io={spec.row_io}: only rows that "
                "go straight to registers and back are accessed once; "
                f"use {axis}=plain or cache=inputs_registers,row_io=direct",
            )
    if spec.loads.call and spec.next_row.in_shared:
        yield Problem(
            ("loads", "next_row"),
            f"loads={spec.loads} with next_row={spec.next_row}: the row is loaded from shared "
            "memory, which has no such load; use loads=plain or next_row=registers",
        )


@rule("prefetch", "cache", "vec_scans", "row_io")
def prefetch_has_vectors_to_fetch(spec: Spec) -> Iterator[Problem]:
    """Prefetching overlaps a global vector load of the writing scan with its arithmetic."""
    if not spec.prefetch:
        return
    if spec.in_registers or spec.scans_shared:
        yield Problem(
            ("prefetch", "cache", "row_io"),
            f"prefetch with cache={spec.cache} and row_io={spec.row_io}: the writing scan "
            "reads nothing from global memory; use prefetch=false",
        )
    elif not spec.vec_second:
        yield Problem(
            ("prefetch", "vec_scans", "vec_size"),
            f"prefetch with vec_scans={spec.vec_scans}: the writing scan loads no vectors; "
            "use prefetch=false" + ("" if spec.is_host else " or vec=4,vec_scans=both"),
        )


@rule(
    *("next_row", "row_loop", "cache", "vec_scans", "trip", "threads_per_row"), "threads_per_block"
)
def a_next_row_is_loaded_to_registers(spec: Spec) -> Iterator[Problem]:
    """What is loaded ahead is a block's next row, which registers will hold."""
    if not spec.next_row.is_ahead:
        return
    ahead = f"next_row={spec.next_row} with"
    if not spec.row_loop.repeats:
        yield Problem(
            ("next_row", "row_loop"),
            f"{ahead} row_loop={spec.row_loop}: a block has no next row; use next_row=none or "
            "row_loop=grid_stride",
        )
    if not (spec.in_registers and spec.vec_first) or spec.trip.is_runtime:
        yield Problem(
            ("next_row", "cache", "vec_scans", "trip"),
            f"{ahead} cache={spec.cache}, vec_scans={spec.vec_scans} and trip={spec.trip}: the row "
            "is loaded into registers by vectors; use next_row=none or cache=inputs_registers,"
            "vec=4,vec_scans=both,trip=static",
        )
    if spec.row_threads < spec.threads_per_block:
        yield Problem(
            ("next_row", "threads_per_row"),
            f"{ahead} threads_per_row={spec.row_threads} and threads={spec.threads_per_block}: all "
            "of a block is on one row and its next; use next_row=none or threads_per_row=auto",
        )


@rule("next_row", "row_io")
def a_chunk_has_no_next_row(spec: Spec) -> Iterator[Problem]:
    """A chunk is in its place until its output is copied back from there."""
    if spec.next_row.is_ahead and spec.in_chunks:
        yield Problem(
            ("next_row", "row_io"),
            f"next_row={spec.next_row} with row_io={spec.row_io}: a chunk's place is taken until "
            "its output is copied back; use next_row=none or row_io=direct",
        )


@rule("dtype", "next_row", "unaligned", "vec_size")
def next_rows_are_copied_by_vectors(spec: Spec) -> Iterator[Problem]:
    """An asynchronous copy is of 8 or 16 bytes that start on their boundary, a bulk one of 16."""
    if not spec.next_row.in_shared:
        return
    if not (spec.unaligned.whole_row or spec.unaligned.is_shifted):
        yield Problem(
            ("next_row", "unaligned"),
            f"next_row={spec.next_row} with unaligned={spec.unaligned}: nothing copies the vectors "
            "of a row off a boundary; use unaligned=scalar_row, unaligned=shift or next_row=none",
        )
    if spec.next_row.is_bulk and spec.vec_bytes != MAX_ACCESS_BYTES:
        yield Problem(
            ("next_row", "vec_size"),
            f"next_row={spec.next_row} with vec={spec.vec_size}: it copies 16 bytes or a multiple; "
            f"use vec={spec.dtype.vec_sizes[-1]} or next_row=async",
        )


@rule("tile_size", "update", "row_split", "vec_size")
def tiles_have_a_use(spec: Spec) -> Iterator[Problem]:
    """tile_size belongs to tile-wise updates and to rows shared by several blocks."""
    tile = spec.tile_size
    if tile is None:
        return
    if not spec.uses_tiles:
        yield Problem(
            ("tile_size", "update", "row_split"),
            f"tile={tile} with update={spec.update} and row_split={spec.row_split}: nothing goes "
            "by tiles; use update=online_tile or row_split=tiles, or leave tile out",
        )
    elif tile % spec.vec_size:
        yield Problem(
            ("tile_size", "vec_size"),
            f"tile={tile} with vec={spec.vec_size}: a tile is a multiple of the vector; "
            f"use tile={-(-tile // spec.vec_size) * spec.vec_size}",
        )


@rule("row_io", "cache", "unaligned")
def chunks_have_one_copy(spec: Spec) -> Iterator[Problem]:
    """Rows of a chunk are in shared memory once, and change while their neighbours are read."""
    if spec.in_chunks and spec.in_shared:
        yield Problem(
            ("cache", "row_io"),
            f"cache={spec.cache} with row_io={spec.row_io}: the inputs are in shared memory "
            "already; use cache=none or cache=inputs_registers",
        )
    if spec.in_chunks and spec.unaligned.is_shifted:
        yield Problem(
            ("unaligned", "row_io"),
            f"unaligned={spec.unaligned} with row_io={spec.row_io}: vectors from the boundary "
            "below a row would read elements that its neighbours' threads write; "
            "use unaligned=scalar_row or row_io=direct",
        )


@rule("row_io", "target", "row_split")
def chunks_have_whole_rows(spec: Spec) -> Iterator[Problem]:
    """A chunk is the rows of one block, in memory that a host does not have."""
    if not spec.in_chunks:
        return
    if spec.is_host:
        yield Problem(
            ("row_io", "target"),
            f"row_io={spec.row_io} with target=host: the host has no shared memory to copy rows "
            "to; use row_io=direct",
        )
    if spec.row_split.whole_blocks:
        yield Problem(
            ("row_io", "row_split"),
            f"row_io={spec.row_io} with row_split={spec.row_split}: a chunk has whole rows, and a "
            "block a part of one; use row_io=direct or row_split=none",
        )


@rule("target", "cache", "vec_size", "exp")
def host_has_no_device(spec: Spec) -> Iterator[Problem]:
    """Plain C++ has no vector types, caches or intrinsics of the device."""
    if not spec.is_host:
        return
    if spec.in_registers or spec.in_shared:
        yield Problem(
            ("cache", "target"),
            f"cache={spec.cache} with target=host: the host has no register file or shared memory "
            "to place a row in; use cache=none or cache=exps_output",
        )
    if spec.vec_size != 1:
        yield Problem(
            ("vec_size", "target"),
            f"vec={spec.vec_size} with target=host: plain C++ has no vectors of elements; "
            "use vec=1",
        )
    if spec.exp.device_only:
        yield Problem(
            ("exp", "target"),
            f"exp={spec.exp} with target=host: it is an instruction of the GPU; use exp=expf",
        )
