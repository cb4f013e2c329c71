"""Rows of an adopted kernel that lie so far into a matrix that offsets need more than 32 bits."""

from __future__ import annotations

from dataclasses import replace

from kgen.adopted.inputs import ORDINARY
from kgen.adopted.source import Adopted
from kgen.errors import CheckFailed, CompileFailed, KernelFault, LaunchRefused
from kgen.evidence.check import CheckRow, mixed_rows
from kgen.evidence.failures import COMPILER, FAULT, RESULT, Failure
from kgen.evidence.reference import criterion_for, judge
from kgen.execute import run_last_rows
from kgen.sources.source import Source

_FAR_ELEMENTS = 2**34
# The rows before are a multiple of it, so whole blocks.
_FAR_MULTIPLE = 1024
_FAR_HINT = (
    '; if it is not meant for so large a matrix, write sizes = "rows * cols < 2147483648" into the '
    "sidecar"
)


def far_row(source: Source, cols: int, timeout_s: float, count: int = 9) -> CheckRow | None:
    """Return the verdict on the last `count` rows of a matrix of more than 2^34 elements.

    None where the sidecar leaves such a matrix out, or only a part of its blocks cannot be run.
    """
    contract = source.contract
    assert isinstance(contract, Adopted)
    rows = -(-_FAR_ELEMENTS // cols // _FAR_MULTIPLE) * _FAR_MULTIPLE + count
    if not _grows(contract, cols) or not contract.takes(rows, cols):
        return None
    row = CheckRow(contract.label, rows, cols, ORDINARY)
    x = mixed_rows(ORDINARY, count, cols)
    try:
        y = run_last_rows(source, x, rows, timeout_s)
    except LaunchRefused:
        return None
    except CheckFailed as failure:
        found = failure_of(failure)
        return replace(row, failures=(replace(found, message=found.message + _FAR_HINT),))
    verdict = judge(y, x, criterion_for(source, cols))
    wrong = (Failure(RESULT, f"of the last {count} rows, {verdict.reason}"),)
    return replace(row, failures=() if verdict.ok else wrong)


def _grows(contract: Adopted, cols: int) -> bool:
    """Whether every launch has blocks of its own for each row, so that only some can be run."""
    sizes = (1024, 2048)
    if not all(contract.takes(rows, cols) for rows in sizes):
        return False
    one, two = (contract.plan(rows, cols).launches for rows in sizes)
    return all(2 * a.grid == b.grid for a, b in zip(one, two, strict=True))


def failure_of(failure: CheckFailed) -> Failure:
    """Return what ended a run as a failure, with the line where it is known."""
    kind = COMPILER if isinstance(failure, CompileFailed) else FAULT
    lines = (failure.line,) if isinstance(failure, KernelFault) and failure.line else ()
    return Failure(kind, str(failure), lines)
