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
    """Add a row for everything that a run had in flight whose process is gone."""
    shapes = defaultdict(list)
    for left in journal.unfinished():
        row = left.row
        shapes[row.provenance.run, row.rows, row.cols, row.l2].append(left)
    for group in shapes.values():
        for row in _finished(group):
            journal.finish(row)


def _finished(group: Sequence[Unfinished]) -> list[Measurement]:
    """Return the rows of a run's shape, from the rounds that all of its candidates had."""
    rounds = min(len(left.samples_us) for left in group)
    if not rounds:
        reason = "the run was killed before the first round of samples was complete"
        return [
            replace(left.row, outcome=Outcome.FAILED, reason=reason, is_complete=False)
            for left in group
        ]
    samples = {left.row.variant: left.samples_us[:rounds] for left in group}
    protocol = Protocol.from_json(group[0].row.protocol)
    rows = [left.row for left in group]
    summaries = summarized(rows, samples, rows[0].variant, protocol, {}, Sensed())
    return [replace(row, is_complete=False, remark=_remark(row, rounds)) for row in summaries]


def _remark(row: Measurement, rounds: int) -> str:
    killed = f"the run was killed after {rounds} rounds"
    return f"{row.remark}; {killed}" if row.remark else killed
