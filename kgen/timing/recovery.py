"""Makes rows of what killed runs left behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from kgen.store.journal import Journal, Unfinished
from kgen.store.measurement import Measurement, Outcome
from kgen.timing.protocol import Protocol
from kgen.timing.summary import Sensed, summarized


def finish_killed_runs(journal: Journal) -> None:
    """Add a row for everything that a run had in flight that is not at work any more.

    Rows with a protocol that only another kgen knows are left for that one.
    """
    problems = defaultdict(list)
    for left in journal.unfinished():
        row = left.row
        problem = (row.rows, row.cols, row.dtype, row.out_dtype, row.l2)
        problems[row.provenance.run, *problem].append(left)
    for group in problems.values():
        if protocol := _protocol(group[0].row):
            for row in _finished(group, protocol):
                journal.finish(row)


def _protocol(row: Measurement) -> Protocol | None:
    try:
        return Protocol.from_json(row.protocol)
    except ValueError:
        return None


def _finished(group: Sequence[Unfinished], protocol: Protocol) -> list[Measurement]:
    """Return the rows of a run's shape, each with the rounds that it had."""
    rows = [left.row for left in group]
    samples = {left.row.variant: left.samples_us for left in group}
    summaries = summarized(rows, samples, rows[0].variant, protocol, {}, Sensed())
    return [_told(replace(row, is_complete=False)) for row in summaries]


def _told(row: Measurement) -> Measurement:
    if not row.samples_us:
        reason = "the run was killed before the first round of samples was complete"
        return replace(row, outcome=Outcome.FAILED, reason=reason)
    killed = f"the run was killed after {len(row.samples_us)} rounds"
    return replace(row, remark=f"{row.remark}; {killed}" if row.remark else killed)
