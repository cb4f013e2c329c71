"""The plot of a benchmark: how near to a copy's rate our best, the best peer and torch come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgen.store.measurement import Kind, Measurement
from reporting.ranking import TORCH, Contest, ratio
from reporting.svg import BLUE, GREEN, GREY, ORANGE, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BAR = 0.27
_SERIES = (("our best", BLUE), ("best peer", ORANGE), (TORCH, GREEN))
Bar = tuple[float, float, float]


def percent_of_copy(title: str, contests: Sequence[Contest]) -> str:
    """Return the plot of the shapes with a copy and times of ours; an empty text without any."""
    shown = [c for c in contests if c.best(Kind.COPY) and c.best(Kind.VARIANT)]
    if not shown:
        return ""

    def fill(figure: Figure) -> None:
        axes = figure.subplots()
        for place, (label, colour) in enumerate(_SERIES):
            _draw_series(axes, [_bar(contest, label) for contest in shown], place, label, colour)
        axes.axvline(100, color=GREY, linestyle="--", linewidth=1)
        axes.set_yticks(range(len(shown)), [contest.shape for contest in shown])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("percent of the rate of the fastest copy (dashed), with 95% intervals")
        axes.set_ylabel("rows x elements of a row")
        figure.legend(loc="outside lower center", ncols=len(_SERIES))

    return draw(title, (7.5, 1.4 + 0.5 * len(shown)), fill)


def _bar(contest: Contest, label: str) -> Bar | None:
    """Return a bar's length and its interval, in percent."""
    copy, row = contest.best(Kind.COPY), _row(contest, label)
    if not (copy and row):
        return None
    found = ratio(copy, row)
    return 100 * found.median, 100 * found.low, 100 * found.high


def _row(contest: Contest, label: str) -> Measurement | None:
    if label == TORCH:
        return contest.named(Kind.PEER, TORCH)
    return contest.best(Kind.VARIANT if label == "our best" else Kind.PEER)


def _draw_series(
    axes: Axes, bars: Sequence[Bar | None], place: int, label: str, colour: str
) -> None:
    drawn = [(number + (place - 1) * _BAR, *bar) for number, bar in enumerate(bars) if bar]
    if not drawn:
        return
    heights, middles, lows, highs = zip(*drawn, strict=True)
    below = [middle - low for middle, low in zip(middles, lows, strict=True)]
    above = [high - middle for middle, high in zip(middles, highs, strict=True)]
    axes.barh(heights, middles, 0.9 * _BAR, color=colour, label=label)
    axes.errorbar(middles, heights, xerr=[below, above], fmt="none", ecolor="black", elinewidth=1)
    for height, middle, high in zip(heights, middles, highs, strict=True):
        axes.annotate(
            f"{middle:.0f}", (high, height), (3, 0), textcoords="offset points", va="center",
            fontsize=7, bbox={"color": "white", "pad": 0.5},
        )  # fmt: skip
