"""The answer of a sweep: what is best on each shape, and what became of everything that was tried.

With rows that were only modelled the order is the cost model's, and `is_modelled` says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kgen.store.measurement import Kind, Measurement, Outcome
from kgen.sweep.crossover import Crossover, Stretch, crossovers, fastest_by_version
from kgen.sweep.effects import Effect, effects
from kgen.sweep.rows import best_first, has_cost, is_tied

_NUMBER = re.compile(r"\d[\d.,]*")


@dataclass(frozen=True)
class Ending:
    """How `count` candidates ended, and why; `reason` and `example` are the first one's.

    Reasons that differ in nothing but numbers are one; `is_same` says whether all are equal.
    """

    outcome: Outcome
    reason: str
    count: int
    example: str
    is_same: bool

    def __str__(self) -> str:
        """Return it as `12 pruned: spills`."""
        like = "" if self.is_same else " (and similar)"
        return f"{self.count} {self.outcome}" + (f": {self.reason}{like}" if self.reason else "")


@dataclass(frozen=True)
class ShapeAnswer:
    """What a sweep found on one shape.

    `ranked` are the contenders, the best first, then the other finalists, then those that left the
    search early. `tied` are those of them that the best is not distinguishably faster than.
    `by_version` has the fastest of each version. `percent_of_copy` is how fast the best is beside
    the fastest copy of the same bytes: 100 is the limit.
    """

    rows: int
    cols: int
    is_modelled: bool
    ranked: tuple[Measurement, ...]
    tied: tuple[Measurement, ...]
    by_version: Mapping[str, Measurement]
    copy_us: float | None
    percent_of_copy: float | None
    effects: tuple[Effect, ...]
    endings: tuple[Ending, ...]

    @property
    def best(self) -> Measurement | None:
        """The winner; None when nothing valid is left."""
        return self.ranked[0] if self.ranked else None


@dataclass(frozen=True)
class Answer:
    """What a sweep found: shape by shape, and where versions overtake each other.

    `refused` counts the combinations that no rule lets exist, by the reason.
    """

    shapes: tuple[ShapeAnswer, ...]
    stretches: tuple[Stretch, ...]
    crossovers: tuple[Crossover, ...]
    refused: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_modelled(self) -> bool:
        """Whether the order rests on the cost model instead of times."""
        return any(shape.is_modelled for shape in self.shapes)

    @property
    def why_empty(self) -> str:
        """Why nothing valid is left on any shape, in one sentence; empty when something is."""
        if any(shape.best for shape in self.shapes):
            return ""
        reasons = [f"{count} refused: {reason}" for reason, count in self.refused.items()]
        for shape in self.shapes:
            reasons += [f"{ending} at {shape.rows} x {shape.cols}" for ending in shape.endings]
        because = "; ".join(reasons) or "there was no combination to try"
        return f"nothing valid is left of the sweep: {because}"


def answer(rows: Iterable[Measurement], refused: Mapping[str, int] | None = None) -> Answer:
    """Return what the rows of a sweep say; shapes are sorted.

    The rows are of one device and protocol, one of a candidate and shape, copies among them.
    `refused` counts what left no row since a rule forbids it.
    """
    rows = list(rows)
    by_shape: dict[tuple[int, int], list[Measurement]] = {}
    for row in rows:
        by_shape.setdefault((row.rows, row.cols), []).append(row)
    shapes = tuple(_shape_answer(by_shape[shape]) for shape in sorted(by_shape))
    stretches, crossings = crossovers(rows)
    return Answer(shapes, tuple(stretches), tuple(crossings), dict(refused or {}))


def _shape_answer(rows: Sequence[Measurement]) -> ShapeAnswer:
    order = best_first(rows)
    best = order[0] if order else None
    copy_us = _copy_us(rows)
    return ShapeAnswer(
        rows[0].rows,
        rows[0].cols,
        best is not None and best.median_us is None,
        tuple(order),
        tuple(row for row in order[1:] if best and is_tied(row, best)),
        fastest_by_version(rows),
        copy_us,
        100 * copy_us / best.median_us if copy_us and best and best.median_us else None,
        tuple(effects(rows)),
        tuple(_endings(rows)),
    )


def _copy_us(rows: Iterable[Measurement]) -> float | None:
    """Return the fastest copy; the rows of a sweep that was gone on with know of it, too."""
    known = [row.median_us if row.kind is Kind.COPY else row.copy_us for row in rows]
    return min((us for us in known if us), default=None)


def _endings(rows: Iterable[Measurement]) -> list[Ending]:
    """Count the outcomes of what competes, the most frequent first.

    Right ones have no reason, unless they could not be compared.
    """
    groups: dict[tuple[Outcome, str], list[tuple[str, str]]] = {}
    for row in rows:
        if row.kind is Kind.COPY:
            continue
        reason = "" if has_cost(row) else (row.reason or row.remark).partition("\n")[0]
        pattern = _NUMBER.sub("#", reason.replace(row.variant, "#"))
        groups.setdefault((row.outcome, pattern), []).append((reason, row.variant))
    endings = [
        Ending(outcome, why, len(group), example, len({reason for reason, _ in group}) == 1)
        for (outcome, _), group in groups.items()
        for why, example in group[:1]
    ]
    return sorted(endings, key=lambda ending: (ending.outcome is not Outcome.OK, -ending.count))
