"""Rules on what is kept between the scans: what can be kept, where, and how much of it."""

from __future__ import annotations

from collections.abc import Iterator

from kgen.limits import MAX_REGISTERS_PER_THREAD, REGISTERS_PER_SM
from kgen.specs.declared import choices
from kgen.specs.fields import short_name
from kgen.specs.rules.problem import Problem, rule
from kgen.specs.spec import Spec

# Addresses, loop state and the reduction need registers beside the cache itself.
OTHER_REGISTERS = 16
REGISTER_BYTES = 4
# A quarter of the 512 KB of local memory that a thread can have.
MAX_LOCAL_VALUES = 32_768
# The axes that decide how many values a thread keeps, and how many it can.
REGISTER_USE = (
    "dtype",
    "cache",
    "items_per_thread",
    "vec_size",
    "target",
    "threads_per_row",
    "rows_at_once",
    "update",
    "tile_size",
    "threads_per_block",
    "trip",
    "min_blocks_per_sm",
    "blocks_per_row",
    "unaligned",
    "static_cols",
    "next_row",
)


@rule("update", "cache")
def online_keeps_inputs(spec: Spec) -> Iterator[Problem]:
    """Exponentials of an online scan refer to a maximum that still changes."""
    if spec.is_online and spec.keeps_exps:
        yield Problem(
            ("cache", "update"),
            f"cache={spec.cache} with update={spec.update}: an online scan has no exponentials to "
            "keep, since the maximum that they refer to changes until the row's end; "
            f"use cache={cache_of_inputs(spec)} or update=three_pass",
        )


def cache_of_inputs(spec: Spec) -> str:
    """Return the first declared cache that keeps inputs where this one keeps exponentials."""
    cache, known = spec.cache, choices("cache", spec.overlay)
    points = (spec.replace(cache=word).cache for word in known)
    alike = (p for p in points if p.place == cache.place and p.template == cache.template)
    return next((str(point) for point in alike if not point.keeps_exps), "none")


@rule("merge", "cache", "vec_scans", "row_split")
def kept_pairs_keep_their_thread(spec: Spec) -> Iterator[Problem]:
    """Exponentials kept against a thread's own maximum are rescaled by that thread."""
    kept_pairs = spec.merge.is_paired and spec.keeps_exps and not spec.in_registers
    if kept_pairs and spec.vec_first != spec.vec_second:
        yield Problem(
            ("vec_scans", "merge", "cache"),
            f"vec_scans={spec.vec_scans} with merge={spec.merge} and cache={spec.cache}: the "
            "writing scan meets exponentials of other threads and does not know the maxima they "
            "refer to; use vec_scans=both or merge=separate",
        )
    if kept_pairs and spec.parks and spec.row_split.kernel_per_phase:
        yield Problem(
            ("merge", "cache", "row_split"),
            f"merge=paired with cache=exps_output and row_split={spec.row_split}: exponentials are "
            "parked against a thread's own maximum, which the writing kernel no longer has; "
            "use merge=separate",
        )


@rule("op", "cache")
def exponentials_are_of_use(spec: Spec) -> Iterator[Problem]:
    """Exponentials are kept for an output that is made of them."""
    if spec.keeps_exps and not spec.op.keeps_exps:
        yield Problem(
            ("cache", "op"),
            f"cache={spec.cache} with op={spec.op}: its output is made of the inputs, not of their "
            f"exponentials; use cache={cache_of_inputs(spec)}",
        )


@rule("op", "normalize")
def there_is_something_to_divide(spec: Spec) -> Iterator[Problem]:
    """Dividing, or multiplying by the reciprocal, is a choice where the output is a quotient."""
    if spec.normalize.divides and not spec.op.normalizes:
        yield Problem(
            ("normalize", "op"),
            f"normalize={spec.normalize} with op={spec.op}: its output is no quotient; "
            "use normalize=reciprocal, which stands for nothing here",
        )


@rule("dtype", "cache", "vec_size", "vec_scans", "unaligned")
def copies_are_of_whole_vectors(spec: Spec) -> Iterator[Problem]:
    """A row comes by vectors or by elements, and in bulk by 16 bytes."""
    if not spec.cache.is_copied:
        return
    widest = spec.dtype.vec_sizes[-1]
    if spec.cache.is_bulk and not (spec.vec_size == widest and spec.vec_first):
        yield Problem(
            ("vec_size", "vec_scans", "cache"),
            f"vec={spec.vec_size},vec_scans={spec.vec_scans} with cache={spec.cache}: a bulk copy "
            f"brings {widest * spec.element_bytes} bytes or a multiple of them; "
            f"use vec={widest},vec_scans=both",
        )
    if spec.vectorises and not spec.unaligned.whole_row:
        yield Problem(
            ("unaligned", "cache"),
            f"unaligned={spec.unaligned} with cache={spec.cache}: a row off a vector boundary is "
            "copied one element at a time, and has no vectors; use unaligned=scalar_row",
        )


@rule("rows_at_once", "cache", "row_io", "trip", "update", "next_row")
def rows_at_once_are_in_registers(spec: Spec) -> Iterator[Problem]:
    """All of these rows are loaded before the first is worked on."""
    if spec.rows_at_once == 1:
        return
    if spec.next_row.is_ahead:
        yield Problem(
            ("rows_at_once", "next_row"),
            f"rows_at_once={spec.rows_at_once} with next_row={spec.next_row}: rows at once have "
            "loads enough on their way; use rows_at_once=1 or next_row=none",
        )
    if not spec.in_registers or spec.in_chunks or spec.trip.is_runtime or spec.is_tiled:
        yield Problem(
            ("rows_at_once", "cache", "row_io", "trip", "update"),
            f"rows_at_once={spec.rows_at_once} with cache={spec.cache}, row_io={spec.row_io}, "
            f"trip={spec.trip} and update={spec.update}: rows that are loaded together are whole, "
            "in registers; use rows_at_once=1 or cache=inputs_registers,row_io=direct,trip=static "
            "and an update that is not by tiles",
        )


@rule("row_order", "row_split", "cache")
def parts_are_of_split_rows(spec: Spec) -> Iterator[Problem]:
    """How a row is dealt to its blocks matters where several of them keep it."""
    if spec.row_order.in_parts and not (spec.row_split.in_one_launch and spec.in_registers):
        yield Problem(
            ("row_order", "row_split", "cache"),
            f"row_order={spec.row_order} with row_split={spec.row_split} and cache={spec.cache}: a "
            "row has parts where blocks of one launch keep it in registers; use "
            "row_order=interleaved or row_split=cluster,blocks_per_row=2,cache=inputs_registers",
        )


@rule("row_split", "cache")
def kernels_share_no_registers(spec: Spec) -> Iterator[Problem]:
    """Registers and shared memory end with the kernel."""
    if spec.row_split.kernel_per_phase and (spec.in_registers or spec.in_shared):
        yield Problem(
            ("cache", "row_split"),
            f"cache={spec.cache} with row_split={spec.row_split}: registers and shared memory do "
            "not outlive a kernel, and a row needs several; use cache=none"
            + ("" if spec.is_online else " or cache=exps_output"),
        )


@rule("cache", "items_per_thread", "trip", "vec_size", "target", "row_split")
def items_need_a_register_cache(spec: Spec) -> Iterator[Problem]:
    """items_per_thread and trip describe the register cache."""
    items = spec.items_per_thread
    if spec.in_registers:
        if items is not None and items < (0 if spec.vec_size > 1 else 1):
            yield Problem(
                ("items_per_thread",),
                f"items={items} with vec={spec.vec_size} holds no element; use items=1",
            )
        return
    can_cache = not spec.is_host and not spec.row_split.kernel_per_phase
    other = " or cache=inputs_registers" if can_cache else ""
    if items is not None:
        yield Problem(
            ("items_per_thread", "cache"),
            f"items={items} with cache={spec.cache}: items are what a thread keeps in registers; "
            f"use items=auto{other}",
        )
    if spec.trip.is_runtime:
        yield Problem(
            ("trip", "cache"),
            f"trip=runtime with cache={spec.cache}: only loops over a register cache have a trip "
            f"count to choose; use trip=static{other}",
        )


@rule(*REGISTER_USE)
def values_fit_the_registers(spec: Spec) -> Iterator[Problem]:
    """Values kept in registers must fit the register file."""
    if spec.in_registers:
        items = spec.items_per_thread
        if items is not None and spec.slots > (limit := value_limit(spec)):
            most = (limit - spec.tail_slots) // spec.vec_size
            yield _too_many(spec, "items_per_thread", items, spec.slots, most)
    elif spec.is_tiled and spec.tile_slots > (limit := value_limit(spec)):
        groups = (limit - spec.tail_slots) // spec.vec_size
        most = groups * spec.vec_size * spec.row_threads
        yield _too_many(spec, "tile_size", spec.tile_cols, spec.tile_slots, most)


def _too_many(spec: Spec, axis: str, value: int, slots: int, most: int) -> Problem:
    word = short_name(axis)
    way = f"{word}={most} or less" if most >= 1 else "fewer threads or min_blocks"
    each = f" of each of {spec.rows_kept} rows" if spec.rows_kept > 1 else ""
    return Problem(
        (axis, "rows_at_once", "threads_per_block", "min_blocks_per_sm"),
        f"{word}={value} x vec={spec.vec_size} keeps {slots} values{each} a thread, and with "
        f"threads={spec.threads_per_block} a thread has registers for "
        f"{max(value_limit(spec), 0)}; use {way}",
    )


def value_limit(spec: Spec) -> int:
    """Return how many values of a row a thread can keep: in registers, launch bounds included.

    Indexed at run time (trip=runtime, and on the host) they are in memory of the thread's own.
    """
    if spec.trip.is_runtime or spec.is_host:
        return MAX_LOCAL_VALUES
    resident = spec.threads_per_block * (spec.min_blocks_per_sm or 1)
    # A warp's registers are handed out in units of 8 a thread.
    share = REGISTERS_PER_SM // resident // 8 * 8
    registers = min(MAX_REGISTERS_PER_THREAD, share) - OTHER_REGISTERS
    return registers // (spec.compute_bytes // REGISTER_BYTES) // spec.rows_kept
