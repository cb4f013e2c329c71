"""The work of a sweep: for each shape, the candidates that have no final row yet."""

from __future__ import annotations

from dataclasses import dataclass, field

from kgen.sources.render import render
from kgen.specs.types import BOTH_FLOAT32, Types, types_of
from kgen.store.columns import flatten
from kgen.store.database import Store
from kgen.store.measurement import Kind, Measurement, Outcome, Provenance
from kgen.sweep.plan import Plan
from kgen.sweep.point import Point
from kgen.timing.candidates import Candidate, with_source
from kgen.timing.protocol import Protocol
from kgen.timing.summary import blank


@dataclass
class Job:
    """One shape's candidates to measure; `done` are the rows that an earlier run finished.

    All candidates have the same `types`. `earlier` has the samples of candidates that an earlier
    run left unfinished.
    """

    rows: int
    cols: int
    candidates: list[Candidate] = field(default_factory=list)
    done: list[Measurement] = field(default_factory=list)
    earlier: dict[str, tuple[float, ...]] = field(default_factory=dict)
    types: Types = BOTH_FLOAT32


def jobs_of(
    plan: Plan, store: Store, protocol: Protocol, provenance: Provenance, keep_all: bool = False
) -> list[Job]:
    """Return a job for every shape of the plan; with `keep_all` what was pruned has no row yet."""
    jobs: dict[tuple[int, int], Job] = {}
    for point in plan.points:
        shape = (point.rows, point.cols)
        job = jobs.setdefault(shape, Job(*shape, types=types_of(point.spec)))
        candidate = candidate_of(point)
        known = _find(candidate, store, protocol, provenance)
        if known and _is_final(known, keep_all):
            job.done.append(known)
            continue
        job.candidates.append(candidate)
        if known and known.samples_us:
            job.earlier[candidate.name] = known.samples_us
    return list(jobs.values())


def unmeasured(
    plan: Plan, store: Store, protocol: Protocol, provenance: Provenance, keep_all: bool = False
) -> list[Point]:
    """Return the points that have no final row; only what may have one is rendered."""

    def is_stored(point: Point) -> bool:
        shape = {"variant": point.variant, "rows": point.rows, "cols": point.cols}
        if not store.find(shape):
            return False
        known = _find(candidate_of(point), store, protocol, provenance)
        return known is not None and _is_final(known, keep_all)

    return [point for point in plan.points if not is_stored(point)]


def candidate_of(point: Point) -> Candidate:
    """Return a point as what is compiled, verified and measured."""
    rows, cols = point.rows, point.cols
    types = types_of(point.spec)
    candidate = Candidate(kind=Kind.VARIANT, name=point.variant, rows=rows, cols=cols, types=types)
    return with_source(candidate, render(point.resolved))


def _find(
    candidate: Candidate, store: Store, protocol: Protocol, provenance: Provenance
) -> Measurement | None:
    """Return the newest row of the same candidate, measured in the same way."""
    return store.find(_identity(blank(candidate, protocol, provenance)))


def _is_final(row: Measurement, keep_all: bool) -> bool:
    """Tell whether a sweep can go by a row: what `kgen bench` counts on the CPU has no cost."""
    if row.outcome is Outcome.PRUNED and keep_all:
        return False
    is_without_cost = row.global_loads is not None and row.model_us is None
    return row.is_complete and not is_without_cost


def _identity(row: Measurement) -> dict[str, object]:
    """Return what must be the same for a row not to be measured again."""
    names = ("variant", "rows", "cols", "source_hash", "protocol", "device", "toolchain")
    values = flatten(row)
    return {name: values[name] for name in names}
