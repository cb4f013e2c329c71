"""What a benchmark can say without a GPU: whether a candidate is right, and what it does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from kgen import cpu
from kgen.adopted.inputs import ORDINARY
from kgen.errors import KgenError, MissingTool
from kgen.evidence.check import mixed_rows
from kgen.evidence.inputs import ALL_INPUTS, make
from kgen.evidence.memory import machine_bytes, needed_bytes
from kgen.evidence.reference import judge
from kgen.machine_trouble import telling_trouble
from kgen.processes import thread_pool
from kgen.sources.source import Source
from kgen.store.measurement import Kind, Measurement, Outcome, Provenance
from kgen.timing.candidates import Candidate
from kgen.timing.protocol import Protocol
from kgen.timing.summary import blank, outcome_of

NOT_TIMED = "verified; times need a GPU"
# Observing costs a second for so many elements; counts of a part of the rows would be misread.
MAX_COUNTED = 1 << 23


def measure_on_cpu(
    candidates: Sequence[Candidate],
    protocol: Protocol,
    provenance: Provenance,
    *,
    timeout_s: float = 120.0,
    keep: Callable[[Measurement], None] = lambda row: None,
) -> list[Measurement]:
    """Verify and count candidates of one shape on the CPU, as many at once as there are cores.

    Returns rows without times; peers are skipped, since they need a GPU. `keep` gets each row as
    soon as it is there, in order. Raises MissingTool when there is no C++ compiler, or less memory
    than one of them takes.
    """
    ours = [candidate for candidate in candidates if candidate.kind is not Kind.COPY]

    def one(candidate: Candidate) -> Measurement:
        return _measure(candidate, protocol, provenance, timeout_s)

    with thread_pool(_at_once(ours)) as pool:
        return list(_kept(pool.map(one, ours), keep))


def _at_once(candidates: Sequence[Candidate]) -> int:
    """Return how many candidates of a shape the cores and half of the memory are enough for."""
    needed = max((needed_bytes(one.rows, one.cols) for one in candidates), default=0)
    return max(1, min(os.cpu_count() or 1, machine_bytes() // 2 // max(1, needed)))


def _kept(
    rows: Iterator[Measurement], keep: Callable[[Measurement], None]
) -> Iterator[Measurement]:
    for row in rows:
        keep(row)
        yield row


def _measure(
    candidate: Candidate, protocol: Protocol, provenance: Provenance, timeout_s: float
) -> Measurement:
    row = replace(blank(candidate, protocol, provenance), remark=NOT_TIMED)
    if row.outcome is not Outcome.OK:
        return row
    if not isinstance(candidate.source, Source):
        return replace(row, outcome=Outcome.SKIPPED, reason="peers need a GPU")
    try:
        with telling_trouble():
            return _counted(candidate, _verified(candidate, row, timeout_s))
    except MissingTool:
        raise
    except KgenError as error:
        return replace(row, outcome=outcome_of(error), reason=str(error))


def _verified(candidate: Candidate, row: Measurement, timeout_s: float) -> Measurement:
    assert isinstance(candidate.source, Source) and candidate.plan
    inputs = ORDINARY if candidate.is_adopted else ALL_INPUTS
    x = mixed_rows(inputs, row.rows, row.cols, candidate.types.dtype)
    y = cpu.run(candidate.source, candidate.plan, x, timeout_s=timeout_s)
    verdict = judge(y, x, candidate.criterion)
    absolute, relative = verdict.errors
    return replace(
        row,
        outcome=Outcome.OK if verdict.ok else Outcome.WRONG,
        reason=verdict.reason,
        max_abs_error=absolute,
        max_rel_error=relative,
    )


def _counted(candidate: Candidate, row: Measurement) -> Measurement:
    if row.outcome is not Outcome.OK:
        return row
    if candidate.is_host:
        return replace(row, remark=f"{NOT_TIMED}, and only kernels are counted")
    if row.rows * row.cols > MAX_COUNTED:
        too_many = (
            f"{row.rows * row.cols:,} elements are too many to count, {MAX_COUNTED:,} are not"
        )
        return replace(row, remark=f"{NOT_TIMED}, and {too_many}")
    assert isinstance(candidate.source, Source) and candidate.plan
    element = candidate.types.dtype
    x = make(row.input_name, row.rows, row.cols, row.seed or 0, element)
    total = cpu.observe(candidate.source, candidate.plan, x).total
    return replace(
        row,
        global_loads=total.global_loads,
        global_stores=total.global_stores,
        global_sectors=total.global_sectors_loaded + total.global_sectors_stored,
        shared_accesses=total.shared_loads + total.shared_stores,
        exponentials=total.exponentials,
        shuffles=total.shuffles,
        barriers=total.barriers,
    )
