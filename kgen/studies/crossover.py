"""Where one variant overtakes another as rows get longer, and how well that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log

from kgen.studies.tables import CROSSOVER_LENGTHS, ONE_ROW_LENGTHS, Study
from kgen.timing.statistics import Ratio


@dataclass(frozen=True)
class Sweep:
    """Two variants over row lengths: where does `a` stop being faster than `b`?"""

    study: Study
    a: str
    b: str
    rows: int
    lengths: tuple[int, ...]


SWEEPS = (
    Sweep(Study.ONE_ROW, "c1", "t1", 1, ONE_ROW_LENGTHS),
    Sweep(Study.ONE_ROW, "t2", "c1", 1, ONE_ROW_LENGTHS),
    Sweep(Study.REPORT, "v8", "v7", 1024, CROSSOVER_LENGTHS),
)


@dataclass(frozen=True)
class CrossoverPoint:
    """Row length `at` which the ratio a / b crosses 1; below it `faster_below` is the faster one.

    It is between `low` and `high` with the confidence of the ratios; None where the measured
    lengths end before the two can be told apart.
    """

    at: float
    low: float | None
    high: float | None
    faster_below: str


def crossings_of(a: str, b: str, ratios: Mapping[int, Ratio]) -> list[CrossoverPoint]:
    """Return every crossing of the ratios a / b by row length through 1, shortest row first.

    Between two lengths the logarithm of the ratio is a line over the logarithm of the length.
    """
    lengths = sorted(ratios)
    found = []
    for index, (left, right) in enumerate(pairwise(lengths)):
        rises = ratios[left].median < 1 <= ratios[right].median
        falls = ratios[left].median >= 1 > ratios[right].median
        if not (rises or falls):
            continue
        at = _crossing(left, right, ratios[left].median, ratios[right].median)
        # Whichever way the ratio goes, its interval meets 1 first with one end and last with the
        # other one.
        first = [ratios[n].high if rises else 1 / ratios[n].low for n in lengths]
        last = [ratios[n].low if rises else 1 / ratios[n].high for n in lengths]
        low = _nearest(lengths, first, range(index, -1, -1))
        high = _nearest(lengths, last, range(index, len(lengths) - 1))
        found.append(CrossoverPoint(at, low, high, a if rises else b))
    return found


def _nearest(lengths: Sequence[int], bound: Sequence[float], lefts: range) -> float | None:
    """Return where `bound` rises through 1 in the first of the stretches that start at `lefts`."""
    for left in lefts:
        if bound[left] < 1 <= bound[left + 1]:
            return _crossing(lengths[left], lengths[left + 1], bound[left], bound[left + 1])
    return None


def _crossing(left: int, right: int, before: float, after: float) -> float:
    """Return the length at which a ratio that is `before` at `left` and `after` at `right` is 1."""
    share = log(before) / (log(before) - log(after))
    return exp(log(left) + share * (log(right) - log(left)))
