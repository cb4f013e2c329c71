"""The verdict on an adopted file: what it is right for, what is wrong, and what is only told.

A stranger's kernel promises less than a generated one. Rows of ordinary numbers must be right, and
no access may break CUDA's rules; of infinities, NaN and the like it is told what comes out. The
sizes that it takes are those of its sidecar, or else those it is found to work for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from kgen.adopted.far import failure_of, far_row
from kgen.adopted.inputs import ODD, ORDINARY
from kgen.adopted.sizes import ANY, COLS, ROWS, limit_of, together, words
from kgen.adopted.source import Adopted
from kgen.errors import (
    CheckFailed,
    KernelTimeout,
)
from kgen.evidence.check import SCHEDULES, CheckRow, mixed_rows
from kgen.evidence.failures import (
    COMPILER,
    FAULT,
    MEMORY,
    RACE,
    RESULT,
    Failure,
    causes,
    observed_failures,
)
from kgen.evidence.inputs import Matrix
from kgen.evidence.reference import criterion_for, judge
from kgen.execute import run
from kgen.shape import Shape
from kgen.sources.source import Source

# What is tried first, until something works; a last block that is not full, before one that is.
_FIRST_COLS = (256, 1024, 128, 64, 32, 4)
_FIRST_ROWS = (9, 32, 256)
# How long a kernel may take that has not ended before; right ones take milliseconds.
_HUNG_S = 2.0
# What the judge says of an element that nobody wrote.
UNWRITTEN = "is not written or NaN"
_OBSERVED_COLS = (1, 33, 100, 256, 257, 1024, 1025)
_OBSERVED_SHAPES = 4


@dataclass
class Judged:
    """The verdict: a row a shape that counts, and sentences of what fails nothing."""

    rows: list[CheckRow] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    limit: str = ANY


def check_adopted(
    source: Source,
    on: str = "cpu",
    shapes: Iterable[Shape] | None = None,
    inputs: tuple[str, ...] = (),
    schedules: tuple[str, ...] = SCHEDULES,
    timeout_s: float = 60.0,
    memory: bool = False,
    races: bool = False,
) -> Judged:
    """Return the verdict on an adopted source: on these shapes, or on all that it works for.

    `inputs` are those that must be right, ORDINARY by default. With `memory` or `races` the kernel
    is also observed on the CPU. Raises MissingTool when there is no compiler.
    """
    kinds = (MEMORY,) * memory + (RACE,) * races
    return _Check(source, on, inputs or ORDINARY, schedules, timeout_s, kinds).judged(shapes)


def right_on(source: Source) -> int:
    """Return on how many of a few row lengths an adopted source is right."""
    return sum(
        check_adopted(source, shapes=[(9, cols)], schedules=SCHEDULES[:1], timeout_s=10.0)
        .rows[0]
        .ok
        for cols in (4, 32, 100, 256, 1000)
    )


class _Check:
    """One check, with what it found so far."""

    def __init__(
        self,
        source: Source,
        on: str,
        inputs: tuple[str, ...],
        schedules: tuple[str, ...],
        timeout_s: float,
        kinds: tuple[str, ...],
    ) -> None:
        assert isinstance(source.contract, Adopted)
        self.source, self.contract, self.on = source, source.contract, on
        self.inputs, self.timeout_s, self.kinds = inputs, timeout_s, kinds
        self.schedules = schedules if on == "cpu" else schedules[:1]
        self.made = Judged()

    def judged(self, shapes: Iterable[Shape] | None) -> Judged:
        """Return the verdict."""
        if shapes is not None:
            for shape in shapes:
                self.contract.require(*shape)
                self._judge_shape(shape)
            return self.made
        base = self._base()
        if base is None:
            return self.made
        self._find_limit(base)
        good = [row for row in self.made.rows if row.ok]
        if self.made.rows and len(good) == len(self.made.rows):
            self._look_closer(base)
        return self.made

    def _base(self) -> Shape | None:
        """Return a shape that works; if there is none, what failed is in the verdict."""
        tried: list[CheckRow] = []
        for cols in _FIRST_COLS:
            for rows in _FIRST_ROWS if self.contract.takes(9, cols) else (*_FIRST_ROWS, 1):
                if not self.contract.takes(rows, cols):
                    continue
                row = self._tried((rows, cols))
                if row.ok:
                    return rows, cols
                tried.append(row)
                if row.found_by == COMPILER or isinstance(self.failure, KernelTimeout):
                    self.made.rows = [row]
                    return None
        self.made.rows = [self._explained(row) for row in tried[:2]]
        if not tried:
            self.made.remarks.append("none of the sizes that the sidecar states was tried")
        return None

    def _find_limit(self, base: Shape) -> None:
        """Try sizes around the base, and keep as verdicts those that its limit includes."""
        rows, cols = base
        by_cols = {n: self._tried((rows, n)) for n in COLS if self.contract.takes(rows, n)}
        by_rows = {n: self._tried((n, cols)) for n in ROWS if self.contract.takes(n, cols)}
        self.made.rows = [*by_cols.values(), *by_rows.values()]
        if self.contract.sidecar.sizes or all(row.ok for row in self.made.rows):
            self._explain_failures()
            return
        limits = [
            limit_of(name, {n: row.ok for n, row in tried.items()}, _computed_wrong(tried))
            for name, tried in (("cols", by_cols), ("rows", by_rows))
        ]
        self.made.limit = together(*(limit or ANY for limit in limits))
        beyond = [row for row in self.made.rows if not row.ok]
        within = [
            row
            for limit, tried in zip(limits, (by_cols, by_rows), strict=True)
            for row in tried.values()
            if limit is None or row.ok
        ]
        self.made.rows = within
        self._tell_limit([row for row in beyond if row not in within])
        self._explain_failures()

    def _tell_limit(self, beyond: list[CheckRow]) -> None:
        """Say what the kernel works for, and what happens elsewhere; a fault there counts."""
        if not beyond:
            return
        faults = [row for row in beyond if row.found_by == FAULT and not self._is_refused(row)]
        first = (faults or beyond)[0]
        self.made.remarks.append(
            f"right for {words(self.made.limit)}; at {first.rows} x {first.cols}: {first.reason}"
        )
        if faults:
            hint = (
                f'; if it is not meant for that, write sizes = "{self.made.limit}" into the '
                "sidecar"
            )
            told = self._explained(first)
            failures = tuple(replace(one, message=one.message + hint) for one in told.failures[:1])
            self.made.rows.append(replace(told, failures=failures))

    def _is_refused(self, row: CheckRow) -> bool:
        return "; CUDA takes " in row.reason

    def _explain_failures(self) -> None:
        bad = [row for row in self.made.rows if not row.ok]
        for row in bad[:2]:
            self.made.rows[self.made.rows.index(row)] = self._explained(row)

    def _explained(self, row: CheckRow) -> CheckRow:
        """Return a failed row with what an observed run shows to be the cause."""
        if self.on != "cpu" or row.found_by not in (FAULT, RESULT):
            return row
        x = mixed_rows(row.inputs, row.rows, row.cols)
        found = causes(self.source, x, self.schedules[-1], self.timeout_s, (MEMORY, RACE))
        return replace(row, failures=(*filter(self._is_serious, found), *row.failures))

    def _is_serious(self, found: Failure) -> bool:
        """Whether a failure is more than the plain read with which a compare-and-swap begins."""
        return found.kind != RACE or not self.contract.swaps(found.lines)

    def _tried(self, shape: Shape) -> CheckRow:
        """Return the verdict on one run of a shape, on as many ordinary rows as it has."""
        rows, cols = shape
        first = cols % len(self.inputs) if rows < len(self.inputs) else 0
        used = self.inputs[first:] + self.inputs[:first]
        row = CheckRow(self.contract.label, rows, cols, used)
        return self._with_run(row, mixed_rows(used, rows, cols), self.schedules[0])

    def _with_run(self, row: CheckRow, x: Matrix, order: str) -> CheckRow:
        """Return a row with the verdict on one more run."""
        self.failure: CheckFailed | None = None
        try:
            y = run(self.source, x, self.on, schedule=order, timeout_s=self.timeout_s)
        except CheckFailed as failure:
            self.failure = failure
            if isinstance(failure, KernelTimeout):  # once is enough
                self.timeout_s = min(self.timeout_s, _HUNG_S)
            return replace(row, failures=(*row.failures, failure_of(failure)))
        verdict = judge(y, x, criterion_for(self.source, row.cols))
        place = f"input {row.inputs[verdict.row % len(row.inputs)]}: "
        bad = () if verdict.ok else (Failure(RESULT, place + verdict.reason),)
        return replace(
            row,
            max_abs_error=max(row.max_abs_error, verdict.max_abs_error),
            max_rel_error=max(row.max_rel_error, verdict.max_rel_error),
            failures=row.failures + bad,
        )

    def _judge_shape(self, shape: Shape) -> None:
        """Add the verdict on a shape in every order of threads, and observed."""
        rows, cols = shape
        row = CheckRow(self.contract.label, rows, cols, self.inputs)
        x = mixed_rows(self.inputs, rows, cols)
        for order in self.schedules:
            row = self._with_run(row, x, order) if row.ok else row
        if not row.ok:
            row = self._explained(row)
        elif self.kinds and rows and cols:
            row = replace(row, failures=tuple(self._observed(x)))
        self.made.rows.append(row)

    def _observed(self, x: Matrix) -> Iterator[Failure]:
        try:
            order = self.schedules[-1]
            found = observed_failures(self.source, x, order, self.timeout_s, self.kinds)
            yield from filter(self._is_serious, found)
        except CheckFailed as failure:
            yield failure_of(failure)

    def _look_closer(self, base: Shape) -> None:
        """Judge some shapes in every order and observed, odd rows, and rows far into a matrix."""
        tried = [row.cols for row in self.made.rows if row.rows == base[0]]
        chosen = [cols for cols in _OBSERVED_COLS if cols in tried] or [base[1]]
        for cols in chosen[-_OBSERVED_SHAPES:]:
            self._judge_shape((base[0], cols))
        self._tell_odd(base)
        if self.on == "cpu":
            self._judge_far(max(cols for cols in tried if cols <= max(base[1], 1100)))

    def _tell_odd(self, base: Shape) -> None:
        """Run rows of infinities and the like: wrong ones are told, and only a fault counts."""
        told = []
        for name in ODD:
            row = CheckRow(self.contract.label, *base, (name,))
            row = self._with_run(row, mixed_rows((name,), *base), self.schedules[0])
            if row.found_by == FAULT:
                self.made.rows.append(row)
            elif not row.ok:
                told.append(name)
        if told:
            self.made.remarks.append(
                f"not what float64 gives on rows of {', '.join(told)}: told, and no failure"
            )

    def _judge_far(self, cols: int) -> None:
        """Judge the last rows of a matrix whose offsets need more than 32 bits."""
        count = 32 if "rows %" in self.made.limit else 9
        if row := far_row(self.source, cols, self.timeout_s, count):
            self.made.rows.append(row)


def _computed_wrong(tried: dict[int, CheckRow]) -> list[int]:
    """Return the sizes of which everything is computed, and something wrong."""
    return [
        size
        for size, row in tried.items()
        if row.found_by == RESULT and UNWRITTEN not in row.reason
    ]
