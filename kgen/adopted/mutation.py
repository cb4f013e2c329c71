"""What catches each mistake in an adopted file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain

from kgen.adopted.check import check_adopted
from kgen.adopted.far import far_row
from kgen.adopted.mistakes import adopted_mutants
from kgen.errors import CheckFailed, MissingTool
from kgen.evidence.check import CheckRow
from kgen.evidence.mutation.campaign import SAME_CODE, TIMEOUT_S, MutantResult
from kgen.evidence.mutation.machine_code import same_machine_code
from kgen.evidence.mutation.mistakes import Mutant
from kgen.processes import thread_pool
from kgen.shape import Shape
from kgen.sources.source import Source

# Of the sizes that the file is right for, so many of the longest and of the shortest rows are run.
_LONGEST, _SHORTEST = 5, 2


def campaign_on(source: Source) -> Iterator[MutantResult]:
    """Yield the result of every mutant of an adopted source, several at a time, in a fixed order.

    Raises CheckFailed for a source that is wrong as it stands: nothing could be told of mutants.
    """
    judged = check_adopted(source)
    assert source.contract
    if bad := [row for row in judged.rows if not row.ok]:
        raise CheckFailed(
            f"{source.contract.label} is wrong as it stands, so nothing can be told of mistakes in "
            f"it: {bad[0].reason}"
        )
    shapes = _shapes(judged.rows)
    far = next((row.cols for row in judged.rows if row.rows > 1 << 20), 0)
    found = list(adopted_mutants(source))
    with thread_pool(os.cpu_count() or 1) as pool:
        yield from pool.map(lambda one: _result(source, one, shapes, far), found)


def _shapes(rows: list[CheckRow]) -> list[Shape]:
    """Return shapes to run, the longest rows first: they find most."""
    most = max(row.rows for row in rows if row.rows < 1 << 20)
    usual = sorted({row.cols for row in rows if row.rows < 1 << 20 and row.cols <= 1100})
    base = max((row.rows for row in rows if row.cols == usual[-1]), default=most)
    lengths = [*usual[-_LONGEST:][::-1], *usual[:_SHORTEST]]
    return [(min(base, 257), cols) for cols in dict.fromkeys(lengths)]


def _result(source: Source, mutant: Mutant, shapes: list[Shape], far: int) -> MutantResult:
    assert source.contract
    label = source.contract.label
    failed = _first_failure(mutant.source, shapes, far)
    if failed:
        return MutantResult(label, mutant, failed.found_by, failed.reason)
    try:
        same = SAME_CODE if same_machine_code(source, mutant.source) else ""
    except MissingTool:
        same = ""
    return MutantResult(label, mutant, equivalent=same)


def _first_failure(source: Source, shapes: list[Shape], far: int) -> CheckRow | None:
    """Return the first failed row of the checks, cheap ones first; None when all pass."""
    quick = (row for shape in shapes for row in check_adopted(source, shapes=[shape]).rows)
    last = (far_row(source, far, TIMEOUT_S) for _ in range(bool(far)))
    observed = (
        row
        for shape in (shapes[0], shapes[len(shapes) // 2])
        for row in check_adopted(
            source, shapes=[shape], timeout_s=TIMEOUT_S, memory=True, races=True
        ).rows
    )
    return next((row for row in chain(quick, last, observed) if row and not row.ok), None)
