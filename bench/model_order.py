"""Compares the order of the cost model, foretold from specs, with times of a GPU; needs none.

usage: python bench/model_order.py [FILE.json]
For each shape of each table of times: Spearman's rank correlation, and the place that the fastest
kernel has in the order of a default sweep. A kernel that the sweep has with another bound on its
registers, or without its row length fixed, has that one's place.
"""

from __future__ import annotations

import functools
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from scipy.stats import spearmanr

from kgen.specs.spec import Spec
from kgen.specs.variants import checked
from kgen.sweep.foretold import foretold_us
from kgen.sweep.likely import likely_spaces, ranked
from kgen.sweep.plan import plan
from kgen.sweep.point import Point

TIMES = Path(__file__).parents[1] / "tests/sweep/h200_clusters.json"
# Times that are closer than this are no order.
APART = 1.02


@dataclass(frozen=True)
class Timed:
    """A kernel and its time."""

    variant: str
    us: float


@dataclass(frozen=True)
class Agreement:
    """How the order on a shape agrees with a table of `times` (how many).

    `correlation` is None for less than three times or a model that has them all alike, `place` for
    a kernel that no sweep would try. Of the `pairs` that are APART, `right` have the model's order.
    """

    rows: int
    cols: int
    table: int
    times: int
    correlation: float | None
    best: str
    place: int | None
    pairs: int
    right: float


def read_times(path: Path = TIMES) -> dict[tuple[int, int, int], list[Timed]]:
    """Return the times of a file by rows, cols and table."""
    times = defaultdict(list)
    for table, rows, cols, variant, us, _ in json.loads(path.read_text())["rows"]:
        times[rows, cols, table].append(Timed(variant, us))
    return dict(times)


def agreement(rows: int, cols: int, table: int, times: Sequence[Timed]) -> Agreement:
    """Return how the model's order agrees with the times of a table."""
    model = [foretold_us(Point(checked(it.variant), rows, cols)) for it in times]
    best = min(times, key=lambda it: it.us)
    pairs = [_is_right(*pair) for pair in combinations(zip(times, model, strict=True), 2)]
    told = [right for right in pairs if right is not None]
    correlation = None
    if len(times) > 2 and len(set(model)) > 1:
        correlation = float(spearmanr([it.us for it in times], model).statistic)
    return Agreement(
        *(rows, cols, table, len(times), correlation, best.variant),
        *(place(best.variant, rows, cols), len(told), sum(told)),
    )


def _is_right(one: tuple[Timed, float], other: tuple[Timed, float]) -> float | None:
    (fast, fast_us), (slow, slow_us) = sorted((one, other), key=lambda entry: entry[0].us)
    if slow.us < APART * fast.us:
        return None
    return 0.5 if fast_us == slow_us else float(fast_us < slow_us)


def place(variant: str, rows: int, cols: int) -> int | None:
    """Return the place of a kernel, or of one much like it, in the order of a default sweep."""
    wanted = _alike(checked(variant), cols)
    return next((number for number, it in enumerate(_order(rows, cols), 1) if it == wanted), None)


@functools.cache
def _order(rows: int, cols: int) -> list[Spec]:
    points = ranked(plan(*likely_spaces([(rows, cols)])).points)
    return [_alike(point.spec, cols) for point in points]


def _alike(spec: Spec, cols: int) -> Spec:
    free = {"min_blocks_per_sm": None, "static_cols": None, "items_per_thread": None}
    unaligned = spec.unaligned if cols % spec.vec_size else "scalar_row"
    return spec.replace(version="", exp="exp2", unaligned=unaligned, **free)


def main() -> None:
    """Print a line for each shape of each table, and what they come to."""
    paths = [Path(name) for name in sys.argv[1:]] or [TIMES]
    found = [
        agreement(*shape, times) for path in paths for shape, times in read_times(path).items()
    ]
    for it in found:
        rho = "    " if it.correlation is None else f"{it.correlation:4.1f}"
        print(
            f"{it.rows:>6} x {it.cols:<8} table {it.table}  {it.times:>2} times  rank correlation "
            f"{rho}  place of the fastest {it.place}  {it.best}"
        )
    rhos = [it.correlation for it in found if it.correlation is not None]
    pairs, right = (sum(getattr(it, name) for it in found) for name in ("pairs", "right"))
    print(
        f"mean rank correlation {sum(rhos) / len(rhos):.2f}; of {pairs} pairs that are 2% apart or "
        f"more {right / pairs:.0%} are in the model's order"
    )


if __name__ == "__main__":
    main()
