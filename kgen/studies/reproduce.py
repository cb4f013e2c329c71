"""Reproduces the studies: measures what they need, shape by shape, and judges what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kgen.shape import Shape
from kgen.store.measurement import Measurement
from kgen.studies.claims import Crossing, Fact, Part, Statement, Timed, statements
from kgen.studies.counts import count_reported
from kgen.studies.crossover import SWEEPS, Sweep
from kgen.studies.dissections import dissections
from kgen.studies.evaluate import dissection_result, statement_result, sweep_result, table_result
from kgen.studies.facts import Facts, Profiles
from kgen.studies.registers import compile_reported
from kgen.studies.result import StudyResult
from kgen.studies.tables import Study, tables
from kgen.studies.times import L2_STATES, Times

ALL = frozenset(Study)
# (targets, rows, cols, state of the L2) -> a measurement a target, called as the target is. The
# targets are measured in one interleaved run, so that their samples are paired by round.
MeasureShape = Callable[[list[str], int, int, str], list[Measurement]]
VariantShape = tuple[str, int, int]


def needed(studies: frozenset[Study] = ALL) -> dict[Shape, list[str]]:
    """Return the variants to time by shape, each once: those of tables, statements, dissections."""
    found: dict[Shape, dict[str, None]] = {}
    for variant, rows, cols in _timed(studies):
        found.setdefault((rows, cols), {})[variant] = None
    return {shape: list(variants) for shape, variants in found.items()}


def _timed(studies: frozenset[Study]) -> Iterator[VariantShape]:
    for table in tables(studies):
        yield from ((cell.variant, cell.rows, cell.cols) for cell in table.cells)
    for statement in statements(studies):
        for part in statement.parts:
            yield from _timed_by(part)
    for dissection in dissections(studies):
        for pair in dissection.comparisons:
            yield from ((variant, *pair.shape) for variant in (pair.a, pair.b))
    for sweep in _sweeps(studies):
        for cols in sweep.lengths:
            yield from ((variant, sweep.rows, cols) for variant in (sweep.a, sweep.b))


def _timed_by(part: Part) -> Iterator[VariantShape]:
    if isinstance(part, Timed):
        yield from ((variant, *part.shape) for variant in (part.a, part.b))
    elif isinstance(part, Crossing):
        for cols in part.lengths:
            yield from ((variant, part.rows, cols) for variant in (part.a, part.b))


def profiled(studies: frozenset[Study] = ALL) -> list[VariantShape]:
    """Return the variants and shapes, each once, that the studies need a profile of."""
    jobs = [job for dissection in dissections(studies) for job in dissection.profiled]
    for statement in statements(studies):
        jobs += _profiled_by(statement)
    return list(dict.fromkeys(jobs))


def _profiled_by(statement: Statement) -> list[VariantShape]:
    facts = [part for part in statement.parts if isinstance(part, Fact)]
    return [
        (variant, *fact.shape)
        for fact in facts
        if fact.metric.is_profiled
        for variant in (fact.a, fact.b)
        if variant
    ]


def reproduce(
    measure_shape: MeasureShape | None,
    studies: frozenset[Study] = ALL,
    l2_states: Sequence[str] = L2_STATES,
    arch: str = "sm_75",
    profiles: Profiles | None = None,
    tell: Callable[[str], None] = lambda words: None,
) -> StudyResult:
    """Return the studies' tables, statements and open questions as they are on this machine.

    `measure_shape` is called once a shape and L2 state with all variants that are needed there;
    without it nothing is timed. Occupancies are those on `arch`. `profiles` has what the profiler
    says of the `profiled` variants; verdicts that need more are "not measured", as are those whose
    compiler is missing. `tell` hears what is being measured.
    """
    measurements = list(_measure(measure_shape, studies, l2_states, tell)) if measure_shape else []
    absent = "it was left out of the run" if measure_shape else "times need a GPU"
    times, facts = Times(measurements, absent), Facts(arch, profiles or {})
    tell("counting and compiling")
    has_report = Study.REPORT in studies
    return StudyResult(
        provenance=measurements[0].provenance if measurements else None,
        arch=arch,
        l2_states=tuple(l2_states),
        tables=tuple(table_result(table, times, l2_states) for table in tables(studies)),
        statements=tuple(
            statement_result(statement, times, facts, l2_states)
            for statement in statements(studies)
        ),
        dissections=tuple(
            dissection_result(dissection, times, facts, l2_states)
            for dissection in dissections(studies)
        ),
        sweeps=tuple(sweep_result(sweep, times, l2_states) for sweep in _sweeps(studies)),
        counts=count_reported(facts) if has_report else (),
        registers=compile_reported() if has_report else (),
    )


def _sweeps(studies: frozenset[Study]) -> list[Sweep]:
    return [sweep for sweep in SWEEPS if sweep.study in studies]


def _measure(
    measure_shape: MeasureShape,
    studies: frozenset[Study],
    l2_states: Sequence[str],
    tell: Callable[[str], None],
) -> Iterator[Measurement]:
    shapes = needed(studies)
    for number, ((rows, cols), variants) in enumerate(shapes.items(), 1):
        for l2 in l2_states:
            tell(f"{number}/{len(shapes)}: {len(variants)} variants at {rows} x {cols}, L2 {l2}")
            yield from measure_shape(variants, rows, cols, l2)
