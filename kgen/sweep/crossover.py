"""Where the best version changes as rows get longer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kgen.store.measurement import Measurement
from kgen.sweep.rows import best_first, contenders, cost_us, is_tied, version_of

Fastest = Mapping[str, Measurement]


@dataclass(frozen=True)
class Stretch:
    """Row lengths, of those measured with `rows` rows, over which one version is the best.

    At each of them it is the fastest or tied with it.
    """

    rows: int
    version: str
    first_cols: int
    last_cols: int


@dataclass(frozen=True)
class Crossover:
    """Between `last_cols` and `first_cols` the best version changes from `old` to `new`.

    `cols` is where their times would be equal, from a straight line of the logarithms, if both
    were measured on both sides and change places there.
    """

    rows: int
    old: str
    new: str
    last_cols: int
    first_cols: int
    cols: float | None


def fastest_by_version(rows: Sequence[Measurement]) -> dict[str, Measurement]:
    """Return the best contender of each version on one shape, the best version first."""
    found: dict[str, Measurement] = {}
    for row in best_first(rows):
        found.setdefault(version_of(row), row)
    return found


def crossovers(rows: Iterable[Measurement]) -> tuple[list[Stretch], list[Crossover]]:
    """Return, for each number of rows, the stretches of row lengths and where they meet.

    There are as few stretches as the measurements allow: a version stays the best until another
    is distinguishably faster.
    """
    by_shape: dict[int, dict[int, list[Measurement]]] = {}
    for row in contenders(rows):
        by_shape.setdefault(row.rows, {}).setdefault(row.cols, []).append(row)
    stretches: list[Stretch] = []
    crossings: list[Crossover] = []
    for number, by_cols in sorted(by_shape.items()):
        fastest = {cols: fastest_by_version(by_cols[cols]) for cols in sorted(by_cols)}
        found = _stretches(number, fastest)
        stretches += found
        crossings += [_crossover(old, new, fastest) for old, new in pairwise(found)]
    return stretches, crossings


def _stretches(rows: int, fastest: Mapping[int, Fastest]) -> list[Stretch]:
    found: list[Stretch] = []
    run: list[int] = []
    common: set[str] = set()
    for cols, by_version in fastest.items():
        best = _best_versions(by_version)
        if run and not common & best:
            found.append(_stretch(rows, run, common, fastest))
            run = []
        common = common & best if run else best
        run.append(cols)
    if run:
        found.append(_stretch(rows, run, common, fastest))
    return found


def _best_versions(by_version: Fastest) -> set[str]:
    best = next(iter(by_version.values()))
    return {name for name, row in by_version.items() if is_tied(row, best)}


def _stretch(
    rows: int, run: Sequence[int], common: set[str], fastest: Mapping[int, Fastest]
) -> Stretch:
    """Return the stretch of the fastest of the versions that are the best all along."""

    def slowness(version: str) -> tuple[float, str]:
        return math.fsum(math.log(cost_us(fastest[cols][version])) for cols in run), version

    return Stretch(rows, min(common, key=slowness), run[0], run[-1])


def _crossover(old: Stretch, new: Stretch, fastest: Mapping[int, Fastest]) -> Crossover:
    before, after = fastest[old.last_cols], fastest[new.first_cols]
    cols = None
    if old.version in after and new.version in before:
        cols = _crossing(
            (old.last_cols, cost_us(before[old.version]) / cost_us(before[new.version])),
            (new.first_cols, cost_us(after[old.version]) / cost_us(after[new.version])),
        )
    return Crossover(old.rows, old.version, new.version, old.last_cols, new.first_cols, cols)


def _crossing(left: tuple[int, float], right: tuple[int, float]) -> float | None:
    """Return where a ratio, given at two row lengths, becomes one on the way up."""
    (x0, y0), (x1, y1) = ((math.log(cols), math.log(ratio)) for cols, ratio in (left, right))
    return math.exp(x0 + (x1 - x0) * -y0 / (y1 - y0)) if y0 < 0 < y1 else None
