"""The plots of a reproduction: times over the row length, and where they cross."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kgen.studies.result import StudyResult, SweepResult, TableResult
from reporting.svg import BLUE, GREEN, GREY, ORANGE, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLES = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "^"), (GREY, "D"))
# Fewer lengths are a table, not a curve.
_LEAST_LENGTHS = 3
# A curve's points: row length, median and its interval in us.
Point = tuple[int, float, float, float]


def length_plots(result: StudyResult) -> dict[str, str]:
    """Return a plot, by its file's name, for each table of times over the row length."""
    plots = {}
    for table in result.tables:
        lengths = {cell.cols for cell in table.cells}
        is_timed = any(t.median_us is not None for cell in table.cells for t in cell.timings)
        if len(lengths) >= _LEAST_LENGTHS and is_timed:
            words = "_".join(_variants(table))
            name = f"over_n_{re.sub(r'[^A-Za-z0-9]+', '_', words)}.svg"
            plots[name] = _plot(table, result.sweeps, result.l2_states)
    return plots


def _variants(table: TableResult) -> list[str]:
    return list(dict.fromkeys(cell.variant for cell in table.cells))


def _plot(table: TableResult, sweeps: Iterable[SweepResult], states: Sequence[str]) -> str:
    own = [s for s in sweeps if s.study == table.study and {s.a, s.b} <= set(_variants(table))]

    def fill(figure: Figure) -> None:
        panels = figure.subplots(1, len(states), sharey=True, squeeze=False)[0]
        for index, (axes, l2) in enumerate(zip(panels, states, strict=True)):
            for variant, (colour, marker) in zip(_variants(table), _STYLES, strict=False):
                _draw_curve(axes, _points(table, variant, index), variant, colour, marker)
            for sweep in own:
                _draw_crossovers(axes, sweep, l2)
            _label(axes, l2)
        panels[0].set_ylabel("median time of a call, us")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper")

    rows = table.cells[0].rows
    title = f"{table.title}, {rows:,} row{'s' if rows > 1 else ''}"
    return draw(title, (1 + 4 * len(states), 3.8), fill)


def _points(table: TableResult, variant: str, index: int) -> list[Point]:
    timings = [(cell.cols, cell.timings[index]) for cell in table.cells if cell.variant == variant]
    return [
        (cols, timing.median_us, timing.low_us, timing.high_us)
        for cols, timing in timings
        if timing.median_us is not None and timing.low_us is not None and timing.high_us is not None
    ]


def _draw_curve(
    axes: Axes, points: Sequence[Point], variant: str, colour: str, marker: str
) -> None:
    lengths = [point[0] for point in points]
    medians = [point[1] for point in points]
    axes.fill_between(
        lengths, [p[2] for p in points], [p[3] for p in points], color=colour, alpha=0.25
    )
    axes.plot(
        lengths, medians, color=colour, marker=marker, markersize=4, linewidth=1.3, label=variant
    )


def _draw_crossovers(axes: Axes, sweep: SweepResult, l2: str) -> None:
    """Mark where the two cross, and shade where they might."""
    for found in sweep.crossovers.get(l2, ()):
        axes.axvline(found.at, color=GREY, linestyle="--", linewidth=1)
        if found.low is not None and found.high is not None:
            axes.axvspan(found.low, found.high, color=GREY, alpha=0.2, linewidth=0)
        axes.annotate(
            f"{sweep.a} = {sweep.b} at {found.at:,.0f}", (found.at, 1), (-3, -3),
            xycoords=("data", "axes fraction"), textcoords="offset points", rotation=90,
            ha="right", va="top", fontsize=7,
        )  # fmt: skip


def _label(axes: Axes, l2: str) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda length, _: _short(length)))
    axes.xaxis.set_minor_locator(NullLocator())
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 1000 else (1,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda us, _: f"{us:,g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_title(f"L2 {l2}", fontsize=9)
    axes.set_xlabel("N, elements of a row (Ki = 1024)")


def _short(length: float) -> str:
    """Return a power of two in a few letters."""
    for unit, size in (("Mi", 2**20), ("Ki", 2**10)):
        if length >= size:
            return f"{length / size:g} {unit}"
    return f"{length:g}"
