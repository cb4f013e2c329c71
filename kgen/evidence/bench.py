"""What `kgen bench` measures: the cases of some variants on one shape."""

from __future__ import annotations

from collections.abc import Iterable

from kgen.errors import UsageError
from kgen.evidence.check import name_of
from kgen.evidence.measure import Case
from kgen.execute import Target, source_for
from kgen.launch import plan, serial_additions


def cases(targets: Iterable[Target], rows: int, cols: int) -> list[Case]:
    """Return a case for each target on a rows x cols matrix, with a reason where it has no room."""
    return [_case(target, rows, cols) for target in targets]


def _case(target: Target, rows: int, cols: int) -> Case:
    try:
        source = source_for(target, rows, cols)
        launches = plan(source, rows, cols)
    except UsageError as refusal:
        return Case(name_of(target), rows, cols, reason=str(refusal))
    additions = serial_additions(source.spec, cols)
    return Case(name_of(target), rows, cols, source, launches, additions)
