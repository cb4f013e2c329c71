"""The sections on sweeps: the best of all combinations on each shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from kgen.store.export import read_json
from kgen.store.measurement import Kind, Measurement, Outcome
from kgen.studies.markdown import plain, table
from reporting import origin
from reporting.measured import notes
from reporting.page import Section, bullets, number, paragraphs
from reporting.ranking import Contest, median, spread

_COLUMNS = (
    "shape>", "best", "us>", "± %>", "GB/s>", "% of copy>", "over>", "ties with it", "combinations",
)  # fmt: skip
# So many names of ties are told.
_NAMED = 3


def sweep_section(path: Path) -> Section:
    """Return the section of a sweep's measurements; its candidates may be of several runs."""
    measured = read_json(path)
    shapes: dict[tuple[int, int], list[Measurement]] = {}
    for row in measured:
        shapes.setdefault((row.rows, row.cols), []).append(row)
    found = [Contest(*shape, tuple(shapes[shape])) for shape in sorted(shapes)]
    broken = [
        f"{contest.shape}: {note}"
        for contest in found
        for note in notes(contest.untimed, (Outcome.WRONG, Outcome.FAILED))
    ]
    text = paragraphs(
        plain(origin.of_measurements(measured)),
        "The best of the combinations that were swept, which are not all: what a version gets "
        "without tuning can be faster where its axes were left out.",
        table(_COLUMNS, map(_row, found)),
        bullets(broken),
    )
    return Section(f"Sweep {path.stem.removeprefix('sweep_')}", text)


def _row(contest: Contest) -> list[str]:
    candidates = [row for row in contest.entries if row.kind is not Kind.COPY]
    ended = Counter(str(row.outcome) for row in candidates)
    told = ", ".join(f"{count:,} {outcome}" for outcome, count in ended.most_common())
    best = contest.best(Kind.VARIANT)
    cells = _best_cells(best, contest) if best else ["none", *[""] * 6]
    return [contest.shape, *cells, told]


def _best_cells(best: Measurement, contest: Contest) -> list[str]:
    over = f"{best.speedup:.3f} over {best.baseline}" if best.speedup else ""
    return [
        best.variant,
        number(median(best)),
        f"{spread(best):.2f}",
        number(best.gb_per_s) if best.gb_per_s else "",
        f"{best.percent_of_copy:.1f}" if best.percent_of_copy else "",
        over,
        _ties(best, contest.timed),
    ]


def _competes(row: Measurement, best: Measurement) -> bool:
    return (row.kind, row.provenance.run) == (best.kind, best.provenance.run)


def _ties(best: Measurement, timed: Sequence[Measurement]) -> str:
    names = [
        row.variant for row in timed if row.is_tied and row is not best and _competes(row, best)
    ]
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
