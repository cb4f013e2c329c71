"""The tuned table: for each shape on each GPU the fastest variant that was measured, as JSON.

An entry is the winner of one shape, and is found for every shape of its class: rows and cols
between the same powers of two (1024 to 2047 are one class). A shape that was measured is answered
with its own winner, another one with that of the nearest of its class (cols first) that can run.
An entry holds for one device, type of input and of output, and hash of the kernels' templates; the
architecture, the toolchain and the protocol are facts beside it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from kgen.errors import CheckFailed, UsageError
from kgen.files import write_atomically
from kgen.specs.rules import require_valid
from kgen.specs.types import BOTH_FLOAT32, Types
from kgen.specs.variants import parse
from kgen.store.measurement import Kind, Measurement
from kgen.sweep.rows import cost_us, finalists, is_tied

FORMAT = 1
AGAIN = "run `kgen sweep` on this GPU and then `kgen tune` again"


class Key(NamedTuple):
    """What there is one winner for."""

    device: str
    dtype: str
    out_dtype: str
    rows: int
    cols: int
    templates: str


class Winner(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fastest variant of a shape, with its evidence.

    Times are microseconds a call; `low_us` and `high_us` bound the median with 95% confidence, and
    `spread_percent` is half their distance over it. `ties` are the variants that it is not
    distinguishably faster than; `candidates` is how many it was compared with, itself among them.
    Tables from before there were types are of float32.
    """

    device: str
    dtype: str
    out_dtype: str = "float32"
    rows: Annotated[int, msgspec.Meta(ge=1)]
    cols: Annotated[int, msgspec.Meta(ge=1)]
    templates: str
    variant: str
    arch: str
    toolchain: str
    flags: str
    protocol: str
    l2: str
    median_us: float
    low_us: float
    high_us: float
    spread_percent: float
    ties: tuple[str, ...]
    candidates: int
    percent_of_copy: float | None
    run: str
    measured_at: str
    commit: str

    @property
    def key(self) -> Key:
        """What this is the winner of."""
        types = (self.dtype, self.out_dtype)
        return Key(self.device, *types, self.rows, self.cols, self.templates)

    @property
    def shape_class(self) -> tuple[int, int]:
        """The class of its shape."""
        return shape_class(self.rows, self.cols)


class _Format(msgspec.Struct):
    kgen_tuned: int


class _Table(_Format):
    winners: list[Winner]


def shape_class(rows: int, cols: int) -> tuple[int, int]:
    """Return the greatest powers of two that are no more than rows and cols, both at least 1."""
    return 1 << (rows.bit_length() - 1), 1 << (cols.bit_length() - 1)


def winners(rows: Iterable[Measurement]) -> list[Winner]:
    """Return the winners among complete timed variants; all in one state of the L2 cache.

    The finalists compete, also with those of other runs; one that was measured more than once
    stands with its newest time.
    """
    by_key: dict[Key, list[Measurement]] = {}
    for row in rows:
        if row.kind is Kind.VARIANT and row.is_complete and row.median_us is not None:
            by_key.setdefault(_key(row), []).append(row)
    competing = map(finalists, by_key.values())
    return [_winner(_newest(found)) for found in competing if found]


def _newest(rows: Iterable[Measurement]) -> list[Measurement]:
    """Return the newest row of each variant and way of compiling it."""
    in_order = sorted(rows, key=lambda row: row.provenance.measured_at)
    return list({(row.variant, row.flags): row for row in in_order}.values())


def _key(row: Measurement) -> Key:
    of = row.provenance
    return Key(of.device, row.dtype, row.out_dtype, row.rows, row.cols, of.templates)


def _winner(rows: Sequence[Measurement]) -> Winner:
    best = min(rows, key=cost_us)
    median = cost_us(best)
    low, high = best.low_us or median, best.high_us or median
    return Winner(
        **_key(best)._asdict(),
        variant=best.variant,
        arch=best.provenance.arch,
        toolchain=best.provenance.toolchain,
        flags=best.flags,
        protocol=best.protocol_name,
        l2=best.l2,
        median_us=median,
        low_us=low,
        high_us=high,
        spread_percent=50 * (high - low) / median,
        ties=tuple(sorted(row.variant for row in rows if row is not best and is_tied(row, best))),
        candidates=len(rows),
        percent_of_copy=best.percent_of_copy,
        run=best.provenance.run,
        measured_at=best.provenance.measured_at,
        commit=best.provenance.commit,
    )


def merge(old: Iterable[Winner], new: Iterable[Winner]) -> list[Winner]:
    """Return a table with both: a new winner replaces the old one of its key."""
    by_key = {winner.key: winner for winner in (*old, *new)}
    return [by_key[key] for key in sorted(by_key)]


def write_table(path: Path, table: Iterable[Winner]) -> None:
    """Write a table in one step, a line a winner. Raises UsageError if it cannot be written."""
    lines = [json.dumps(msgspec.to_builtins(winner)) for winner in table]
    entries = "[\n" + ",\n".join(lines) + "\n]" if lines else "[]"
    write_atomically(path, f'{{"kgen_tuned": {FORMAT}, "winners": {entries}}}\n')


def read_table(path: Path) -> list[Winner]:
    """Return the table that `write_table` wrote.

    Raises UsageError when there is no such file, or it is not JSON, not a table or of a newer kgen.
    """
    try:
        content = path.read_bytes()
        found = msgspec.json.decode(content, type=_Format).kgen_tuned
        if found != FORMAT:
            raise ValueError(f"its format is {found}, this kgen's {FORMAT}")
        return msgspec.json.decode(content, type=_Table).winners
    except FileNotFoundError:
        raise UsageError(f"there is no {path}; {AGAIN}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{path} is no tuned table: {error}; name another file, or delete it and {AGAIN}"
        ) from None


def find(
    table: Iterable[Winner],
    device: str,
    rows: int,
    cols: int,
    templates: str,
    types: Types = BOTH_FLOAT32,
) -> Winner:
    """Return the winner to use for a shape: its own, or the nearest one's of its class.

    `templates` is the hash of those in use. Raises CheckFailed when the class was measured with
    other templates only; UsageError when the table is for other devices or types, has no winner
    of the class, or none that can run on the shape.
    """
    if rows < 1 or cols < 1:
        raise UsageError(f"{rows} x {cols} has no elements, so nothing is the fastest on it")
    table = _narrowed(table, "device", device)
    for axis, element in types._asdict().items():
        table = _narrowed(table, axis, element)
    table = _of_class(table, rows, cols)
    fresh = [winner for winner in table if winner.templates == templates]
    if not fresh:
        stale = max(table, key=lambda winner: winner.measured_at)
        raise CheckFailed(
            f"{stale.variant} won at {stale.rows} x {stale.cols} with the templates "
            f"{stale.templates} ({stale.measured_at[:10]}), and this kgen has {templates}; {AGAIN}"
        )
    return _first_that_runs(sorted(fresh, key=lambda it: _distance(it, rows, cols)), rows, cols)


def _narrowed(table: Iterable[Winner], field: str, value: str) -> list[Winner]:
    table = list(table)
    found = [winner for winner in table if getattr(winner, field) == value]
    if not found:
        value = str(value)
        known = ", ".join(sorted({getattr(winner, field) for winner in table})) or "nothing"
        raise UsageError(f"the table has no {field} {value!r}, but {known}; {AGAIN}")
    return found


def _of_class(table: Sequence[Winner], rows: int, cols: int) -> list[Winner]:
    wanted = shape_class(rows, cols)
    found = [winner for winner in table if winner.shape_class == wanted]
    if not found:
        least_rows, least_cols = wanted
        known = ", ".join(sorted({f"{winner.rows} x {winner.cols}" for winner in table}))
        raise UsageError(
            f"no shape of {least_rows} to {2 * least_rows - 1} rows and {least_cols} to "
            f"{2 * least_cols - 1} cols was measured on {table[0].device}, only {known}; {AGAIN}"
        )
    return found


def _distance(winner: Winner, rows: int, cols: int) -> tuple[float, float]:
    return abs(math.log(winner.cols / cols)), abs(math.log(winner.rows / rows))


def _first_that_runs(table: Sequence[Winner], rows: int, cols: int) -> Winner:
    refusals = []
    for winner in table:
        try:
            require_valid(parse(winner.variant).resolve(cols), rows, cols)
            return winner
        except UsageError as refusal:
            refusals.append(f"{winner.variant}: {refusal}")
    raise UsageError(
        f"no winner of the class can run on {rows} x {cols} ({'; '.join(refusals)}); {AGAIN}"
    )
