"""A reproduction's result as tables of words, for the terminal and for Markdown alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kgen.studies.counts import Accesses
from kgen.studies.crossover import CrossoverPoint
from kgen.studies.registers import Compiled, Resources
from kgen.studies.result import (
    CellResult,
    DissectionResult,
    StatementResult,
    StudyResult,
    SweepResult,
    TableResult,
    Timing,
)
from kgen.studies.verdicts import Judgement
from kgen.timing.statistics import Ratio

NOT_KNOWN = "-"
_UNITS_IN_US = {"us": 1.0, "ms": 1000.0}


@dataclass(frozen=True)
class Grid:
    """A table: a column whose name ends in `>` is set flush right. `notes` are sentences below."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def grids(result: StudyResult) -> list[Grid]:
    """Return all tables of a result, in the order in which they are shown.

    Where nothing was timed, those of times are left out.
    """
    states = result.l2_states
    timed = result.provenance is not None
    found = [_table(table, states) for table in result.tables if timed]
    found.append(_statements(result.statements, states))
    for dissection in result.dissections:
        found += [_dissection(dissection, states)] if timed else []
        found += _metrics(dissection)
    found += [_sweep(sweep, states) for sweep in result.sweeps]
    found += [_counts(result.counts), _registers(result.registers)]
    return [grid for grid in found if grid.rows]


def _table(table: TableResult, states: Sequence[str]) -> Grid:
    shapes = {(cell.rows, cell.cols) for cell in table.cells}
    has_figures = any(cell.figure for cell in table.cells)
    by_length = len(shapes) > 1 and not has_figures
    make = _by_length if by_length else _by_variant
    columns, rows = make(table, states)
    reasons = [
        f"{cell.variant} at {cell.rows} x {cell.cols}: {timing.outcome or 'not measured'}, "
        f"{timing.reason}"
        for cell in table.cells
        for timing in cell.timings
        if timing.median_us is None
    ]
    shape = "" if len(shapes) > 1 else " at {} x {}".format(*shapes.pop())
    source = f"; figures of the {table.source}" if has_figures else ""
    title = f"{table.title}{shape}, {table.unit}{source}"
    return Grid(title, columns, rows, _brief(reasons))


def _brief(reasons: Sequence[str]) -> tuple[str, ...]:
    """Return the reasons, or one where all cells have the same."""
    causes = {reason.partition(": ")[2] for reason in reasons}
    if len(causes) == 1 and len(reasons) > 1:
        return (f"all without a time: {causes.pop()}",)
    return tuple(dict.fromkeys(reasons))


def _by_variant(
    table: TableResult, states: Sequence[str]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """A row a cell; ratios are to the first cell of the same shape."""
    with_shape = len({(cell.rows, cell.cols) for cell in table.cells}) > 1
    has_figures = any(cell.figure for cell in table.cells)
    columns = ("variant", *(("study>", "ratio>") if has_figures else ()))
    columns += tuple(column for l2 in states for column in (f"L2 {l2}>", "ratio>"))
    first: dict[tuple[int, int], CellResult] = {}
    rows = []
    for cell in table.cells:
        base = first.setdefault((cell.rows, cell.cols), cell)
        name = f"{cell.variant}, N = {cell.cols}" if with_shape else cell.variant
        row = [name]
        if has_figures:
            row += [_range(cell.figure), _over(_middle(cell.figure), _middle(base.figure))]
        for timing, based in zip(cell.timings, base.timings, strict=True):
            row += [_time(timing, table.unit), _over(timing.median_us, based.median_us)]
        rows.append(tuple(row))
    return columns, tuple(rows)


def _by_length(
    table: TableResult, states: Sequence[str]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """A row a row length, a column a variant and L2 state."""
    variants = list(dict.fromkeys(cell.variant for cell in table.cells))
    columns = ("N>", *(f"{variant}, {l2}>" for l2 in states for variant in variants))
    found = {(cell.cols, cell.variant): cell.timings for cell in table.cells}
    lengths = dict.fromkeys(cell.cols for cell in table.cells)
    rows = tuple(
        (
            f"{cols:,}",
            *(
                _time(found[cols, variant][index], table.unit)
                for index in range(len(states))
                for variant in variants
            ),
        )
        for cols in lengths
    )
    return columns, rows


def _time(timing: Timing, unit: str) -> str:
    if timing.median_us is None or timing.low_us is None or timing.high_us is None:
        return str(timing.outcome or NOT_KNOWN)
    scale = _UNITS_IN_US[unit]
    spread = (timing.high_us - timing.low_us) / 2 / timing.median_us
    return f"{_number(timing.median_us / scale)} ± {100 * spread:.1f}%"


def _middle(figure: Sequence[float]) -> float | None:
    return sum(figure) / len(figure) if figure else None


def _range(figure: Sequence[float]) -> str:
    return " - ".join(f"{value:g}" for value in figure) or NOT_KNOWN


def _over(value: float | None, base: float | None) -> str:
    return NOT_KNOWN if value is None or not base else f"{value / base:.3g}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10_000 else f"{value:.4g}"


_RULES = (
    "The rule: a part holds or does not hold when the whole 95% interval of the ratio is on one "
    "side of what it says, and is within noise when the interval straddles that edge. 'About' a "
    "factor is within 20%, 'the same' within 3%, a stated gain from half to one and a half of "
    "itself, 'no faster' up to 1% faster. A statement takes its worst part. Counts and the "
    "profiler's figures are of one run with cold caches, and stand under both states of the L2.",
)


def _statements(statements: Iterable[StatementResult], states: Sequence[str]) -> Grid:
    columns = ("", "statement", "measured", *(c for l2 in states for c in ("figure>", f"L2 {l2}")))
    rows = []
    for statement in statements:
        verdicts = [word for l2 in states for word in ("", statement.verdicts[l2].upper())]
        rows.append((str(statement.number), statement.words, "", *verdicts))
        for part in statement.parts:
            judged = [word for l2 in states for word in _judged(part.judgements[l2])]
            rows.append(("", part.words, part.measured, *judged))
    return Grid("Statements of the studies", columns, tuple(rows), _RULES)


def _judged(judgement: Judgement) -> tuple[str, str]:
    reason = f": {judgement.reason}" if judgement.reason else ""
    return _ratio(judgement.figure), f"{judgement.verdict}{reason}"


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return NOT_KNOWN
    if ratio.low == ratio.high:
        return f"{ratio.median:.4g}"
    return f"{ratio.median:.4g} ({ratio.low:.4g} - {ratio.high:.4g})"


def _dissection(dissection: DissectionResult, states: Sequence[str]) -> Grid:
    columns = ("a / b", "what differs", *(c for l2 in states for c in ("a / b>", f"L2 {l2}")))
    rows = []
    for pair in dissection.comparisons:
        readings = [pair.readings[l2] for l2 in states]
        words = [word for reading in readings for word in (_ratio(reading.ratio), reading.words)]
        rows.append((f"{pair.a} / {pair.b} at {pair.rows} x {pair.cols}", pair.differ, *words))
    return Grid(f"{dissection.title}: {dissection.question}", columns, tuple(rows))


def _metrics(dissection: DissectionResult) -> list[Grid]:
    if not dissection.metrics:
        return []
    names = list(dict.fromkeys(name for values in dissection.metrics.values() for name in values))
    rows = tuple(
        (job, *(_number(values[name]) if name in values else NOT_KNOWN for name in names))
        for job, values in dissection.metrics.items()
    )
    columns = ("variant", *(f"{name}>" for name in names))
    return [Grid(f"{dissection.title}: what the profiler says", columns, rows)]


def _sweep(sweep: SweepResult, states: Sequence[str]) -> Grid:
    lengths = dict.fromkeys(cols for ratios in sweep.ratios.values() for cols in ratios)
    rows = tuple(
        (f"{int(cols):,}", *(_ratio(sweep.ratios.get(l2, {}).get(cols)) for l2 in states))
        for cols in lengths
    )
    notes = [f"L2 {l2}: not measured, {reason}" for l2, reason in sweep.reasons.items()]
    for l2, found in sweep.crossovers.items():
        words = "; ".join(_crossover(crossover, sweep) for crossover in found) or "no crossover"
        notes.append(f"L2 {l2}: {words}")
    title = f"{sweep.a} / {sweep.b} over the row length, {sweep.rows} row(s)"
    return Grid(title, ("N>", *(f"L2 {l2}>" for l2 in states)), rows, tuple(notes))


def _crossover(crossover: CrossoverPoint, sweep: SweepResult) -> str:
    low = "the shortest" if crossover.low is None else f"{crossover.low:,.0f}"
    high = "the longest" if crossover.high is None else f"{crossover.high:,.0f}"
    other = sweep.b if crossover.faster_below == sweep.a else sweep.a
    return (
        f"{crossover.faster_below} is faster below N = {crossover.at:,.0f} (between {low} and "
        f"{high}), {other} above"
    )


def _counts(counts: Iterable[Accesses]) -> Grid:
    rows = tuple(
        (
            row.variant,
            f"{row.rows} x {row.cols}",
            *(f"{number:,}" for number in (row.loads, row.stores)),
            *(_known(number) for number in (row.own_loads, row.own_stores)),
            "equal" if row.agrees else row.reason or "NOT EQUAL",
        )
        for row in counts
    )
    columns = ("variant", "shape", "loads, report>", "stores, report>", "loads>", "stores>", "")
    return Grid("Global loads and stores, in warp instructions", columns, rows)


def _registers(compiled: Iterable[Compiled]) -> Grid:
    rows = []
    for row in compiled:
        own = row.own or Resources()
        pairs = [
            (row.reported.registers, own.registers),
            (row.reported.stack_bytes, own.stack_bytes),
            (row.reported.spill_bytes, own.spill_bytes),
            (row.reported.shared_bytes, own.shared_bytes),
            (row.reported.occupancy, own.occupancy),
        ]
        cells = [f"{_known(theirs)} / {_known(ours)}" for theirs, ours in pairs]
        rows.append((row.variant, str(row.cols), *cells, row.reason))
    columns = ("variant", "N>", "registers>", "stack B>", "spills B>", "shared B>", "occupancy %>")
    return Grid("On sm_75: the report / here", (*columns, ""), tuple(rows))


def _known(value: float | None) -> str:
    return (
        NOT_KNOWN if value is None else f"{value:,g}" if isinstance(value, float) else f"{value:,}"
    )
