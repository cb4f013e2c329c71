"""Puts what was measured beside what the studies say."""

from __future__ import annotations

from collections.abc import Sequence

from kgen.errors import KgenError
from kgen.store.measurement import Outcome
from kgen.studies.claims import Crossing, Fact, Part, Statement
from kgen.studies.crossover import CrossoverPoint, Sweep, crossings_of
from kgen.studies.dissections import Comparison, Dissection
from kgen.studies.facts import Facts
from kgen.studies.judge import judge_part
from kgen.studies.result import (
    CellResult,
    ComparisonResult,
    DissectionResult,
    PartResult,
    Reading,
    StatementResult,
    SweepResult,
    TableResult,
    Timing,
)
from kgen.studies.tables import Cell, Table
from kgen.studies.times import Times
from kgen.studies.verdicts import all_of
from kgen.timing.statistics import Ratio

NO_DIFFERENCE = "no difference to be seen"


def table_result(table: Table, times: Times, l2_states: Sequence[str]) -> TableResult:
    """Return a study's table with the times of this machine."""
    cells = tuple(
        CellResult(
            cell.variant,
            cell.rows,
            cell.cols,
            cell.figure,
            tuple(_timing(cell, times, l2) for l2 in l2_states),
        )
        for cell in table.cells
    )
    return TableResult(table.study, table.title, table.unit, table.source, cells)


def _timing(cell: Cell, times: Times, l2: str) -> Timing:
    found = times.find(cell.variant, cell.rows, cell.cols, l2)
    if found is None:
        return Timing(l2, None, reason=times.absent)
    if found.outcome is not Outcome.OK:
        return Timing(l2, found.outcome, reason=found.reason)
    return Timing(l2, found.outcome, found.median_us, found.low_us, found.high_us)


def statement_result(
    statement: Statement, times: Times, facts: Facts, l2_states: Sequence[str]
) -> StatementResult:
    """Return the verdicts on a statement and on each of its parts."""
    parts = tuple(
        PartResult(
            part.words,
            _measured(part),
            {l2: judge_part(part, times, facts, l2) for l2 in l2_states},
        )
        for part in statement.parts
    )
    verdicts = {l2: all_of(part.judgements[l2].verdict for part in parts) for l2 in l2_states}
    return StatementResult(statement.number, statement.study, statement.words, verdicts, parts)


def _measured(part: Part) -> str:
    """Say what the figure of a part is."""
    if isinstance(part, Crossing):
        return f"N where {part.a} / {part.b} is 1, {part.rows} rows"
    rows, cols = part.shape
    pair = f"{part.a} / {part.b}" if part.b else part.a
    what = f"{part.metric}, {pair}" if isinstance(part, Fact) else pair
    return f"{what} at {rows} x {cols}"


def dissection_result(
    dissection: Dissection, times: Times, facts: Facts, l2_states: Sequence[str]
) -> DissectionResult:
    """Return the ratios of a dissection with what they say, and its variants' profiles."""
    comparisons = tuple(
        ComparisonResult(
            pair.a,
            pair.b,
            *pair.shape,
            pair.differ,
            {l2: _reading(pair, times, l2) for l2 in l2_states},
        )
        for pair in dissection.comparisons
    )
    return DissectionResult(
        dissection.title, dissection.question, comparisons, _metrics(dissection, facts)
    )


def _reading(pair: Comparison, times: Times, l2: str) -> Reading:
    try:
        ratio = times.ratio(pair.a, pair.b, *pair.shape, l2)
    except KgenError as missing:
        return Reading(None, f"not measured: {missing}")
    if ratio.contains_one:
        return Reading(ratio, NO_DIFFERENCE)
    return Reading(ratio, pair.less if ratio.high < 1 else pair.more)


def _metrics(dissection: Dissection, facts: Facts) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for variant, rows, cols in dissection.profiled:
        profile = facts.profiles.get((variant, rows, cols), {})
        values = {
            str(m): value for m in dissection.metrics if (value := profile.get(m)) is not None
        }
        if values:
            found[f"{variant} at {rows} x {cols}"] = values
    return found


def sweep_result(sweep: Sweep, times: Times, l2_states: Sequence[str]) -> SweepResult:
    """Return the ratios over row lengths and where they cross 1."""
    ratios: dict[str, dict[str, Ratio]] = {}
    crossings: dict[str, tuple[CrossoverPoint, ...]] = {}
    reasons: dict[str, str] = {}
    for l2 in l2_states:
        try:
            found = times.ratios(sweep.a, sweep.b, sweep.rows, sweep.lengths, l2)
        except KgenError as missing:
            reasons[l2] = str(missing)
            continue
        ratios[l2] = {str(cols): ratio for cols, ratio in found.items()}
        crossings[l2] = tuple(crossings_of(sweep.a, sweep.b, found))
    return SweepResult(sweep.study, sweep.a, sweep.b, sweep.rows, ratios, crossings, reasons)
