"""The sections on a benchmark of our kernels, other people's and copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from html import escape
from pathlib import Path

from kgen.store.export import read_json
from kgen.store.measurement import Kind, Measurement, Outcome
from kgen.studies.markdown import plain, table
from kgen.timing.protocol import REPORT
from reporting import origin
from reporting.bars import percent_of_copy
from reporting.page import Section, bullets, image, interval, number, paragraphs
from reporting.ranking import TORCH, Contest, contests, median, ratio, spread

_KINDS = {Kind.VARIANT: "ours", Kind.FILE: "file", Kind.PEER: "peer", Kind.COPY: "copy"}
# A footnote names so many of the rows that it is about.
_NAMED = 6
_READING = (
    "Times are medians of a call with half of their 95% interval. Ratios are of samples paired by "
    "round, with their 95% interval; where it contains 1 the two are a tie. The best of a kind is "
    "the one with the least median, so its lead over others of its kind is flattered a little. In "
    "the tables of single shapes percentages of a copy are of the medians, not of pairs."
)
_LEFT_OUT = (
    "A peer is left out whose output was wrong. Some are wrong on rows of odd values only "
    "(infinities, NaN, values near the largest float): newer runs time these and say so in the "
    "remark, older ones left them out. Ours were tuned by the sweeps below, peers by themselves."
)
_UNPAIRED = (
    "Here one candidate was measured after the other, so what drifted meanwhile is in the ratios."
)


def bench_section(path: Path, title: str) -> Section:
    """Return the section of a file of measurements: who wins each shape, and a table a shape."""
    measured = read_json(path)
    found = contests(measured)
    name = f"percent_of_copy_{path.stem.removeprefix('bench_')}.svg"
    drawing = percent_of_copy(title, found)
    text = paragraphs(
        plain(origin.of_measurements(measured)),
        _READING,
        _UNPAIRED if any(row.protocol_name == REPORT.name for row in measured) else "",
        _headline(found),
        image(name, f"{title}: percent of the copy's rate") if drawing else "",
        *map(_details, found),
    )
    return Section(title, text, {name: drawing} if drawing else {})


def _headline(found: Iterable[Contest]) -> str:
    compared = [(contest, _winner(contest)) for contest in found if contest.timed]
    columns = (
        "shape>", "our best", "us>", "best peer", "us>", "peer / ours>", "faster", "copy us>",
        "ours, % of copy>", "peers left out",
    )  # fmt: skip
    rows = [_headline_row(contest, winner) for contest, winner in compared]
    wins = Counter(winner for _, winner in compared)
    words = (
        f"Shapes on which both have times: {wins.total() - wins['']}. Ours is faster on "
        f"{wins['ours']}, the best peer on {wins['peer']}, and on {wins['tie']} they tie."
    )
    return paragraphs("### Our best and the best peer", words, table(columns, rows), _LEFT_OUT)


def _winner(contest: Contest) -> str:
    """Return who is faster: ours, peer or tie; nothing where one of them has no times."""
    ours, peer = contest.best(Kind.VARIANT), contest.best(Kind.PEER)
    if not (ours and peer):
        return ""
    compared = ratio(peer, ours)
    return "tie" if compared.contains_one else "ours" if compared.low > 1 else "peer"


def _headline_row(contest: Contest, winner: str) -> list[str]:
    ours, peer, copy = (contest.best(kind) for kind in (Kind.VARIANT, Kind.PEER, Kind.COPY))
    return [
        contest.shape,
        *_name_and_time(ours),
        *_name_and_time(peer),
        _ratio(peer, ours),
        winner,
        number(median(copy)) if copy else "",
        _percent(copy, ours),
        ", ".join(row.variant for row in contest.untimed if _is_left_out(row)),
    ]


def _is_left_out(row: Measurement) -> bool:
    return row.kind is Kind.PEER and row.outcome in (Outcome.WRONG, Outcome.FAILED)


def _name_and_time(row: Measurement | None) -> list[str]:
    return [row.variant, number(median(row))] if row else ["-", ""]


def _ratio(a: Measurement | None, b: Measurement | None) -> str:
    if not (a and b):
        return ""
    found = ratio(a, b)
    return interval(found.median, found.low, found.high)


def _percent(copy: Measurement | None, row: Measurement | None) -> str:
    if not (copy and row):
        return ""
    found = ratio(copy, row)
    tie = ", tie" if found.contains_one else ""
    return interval(100 * found.median, 100 * found.low, 100 * found.high, digits=1) + tie


def _details(contest: Contest) -> str:
    """Return the table of a shape, folded under what is best there."""
    best = contest.best(Kind.VARIANT)
    told = f": {best.variant} takes {number(median(best))} us" if best else ""
    summary = f"<details>\n<summary>{contest.shape}{escape(told)}</summary>"
    return paragraphs(summary, _times(contest), bullets(notes(contest.untimed)), "</details>")


def _times(contest: Contest) -> str:
    if not contest.timed:
        return ""
    columns = (
        "rank", "candidate", "kind", "us>", "± %>", "GB/s>", "% of copy>",
        f"over {TORCH}>", "remark",
    )  # fmt: skip
    ranks, torch = contest.ranks(), contest.named(Kind.PEER, TORCH)
    rows = [[ranks.get((row.kind, row.variant), ""), *_cells(row, torch)] for row in contest.timed]
    return table(columns, rows)


def _cells(row: Measurement, torch: Measurement | None) -> list[str]:
    over = ratio(torch, row) if torch else None
    tie = " =" if over and over.contains_one and row is not torch else ""
    ended = [] if row.is_complete else ["ended before its rounds were over"]
    return [
        row.variant,
        _KINDS[row.kind],
        number(median(row)),
        f"{spread(row):.2f}",
        number(row.gb_per_s) if row.gb_per_s else "",
        f"{row.percent_of_copy:.1f}" if row.percent_of_copy else "",
        f"{over.median:.3f}{tie}" if over else "",
        "; ".join(filter(None, [row.remark, *ended])),
    ]


def notes(rows: Iterable[Measurement], outcomes: Container[Outcome] = tuple(Outcome)) -> list[str]:
    """Return a sentence for each way in which rows ended without times, and its reason."""
    groups: dict[tuple[Outcome, str], list[str]] = {}
    for row in rows:
        if row.outcome in outcomes:
            groups.setdefault((row.outcome, row.reason), []).append(row.variant)
    return [
        f"{_some(names)}: {'no times' if outcome is Outcome.OK else outcome}"
        + (f", {reason}" if reason else "")
        for (outcome, reason), names in groups.items()
    ]


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
