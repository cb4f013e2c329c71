"""The float64 results that kernels are judged against, and the criteria of the judgement.

An absolute tolerance would let an all-zero output pass on long rows, so the errors of a softmax are
measured relative to the largest value of their row of the reference; other operations declare what
theirs are relative to.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgen.launch import additions_of, serial_additions
from kgen.numpy_types import finfo
from kgen.sources.source import Source
from kgen.specs.choice import Element, Op
from kgen.specs.declared import FLOAT32
from kgen.specs.spec import Spec
from kgen.specs.versions import V1

Array = NDArray[Any]

# Half a unit in the last place of float32: the relative error of one rounding.
FLOAT32_ROUNDING = 2.0**-24
FLOAT64_ROUNDING = 2.0**-53

# Rows are judged this many elements at a time (8 MiB in float64), whatever the matrix's size.
CHUNK_ELEMENTS = 1 << 20
# References of more elements (512 MiB in float64) are computed again for every output.
MAX_KEPT_ELEMENTS = 1 << 26


SOFTMAX: Op = V1.op
_FUNCTIONS = {"exp": np.exp, "log": np.log, "abs": np.abs, "min": np.minimum, "max": np.maximum}


def reference64(x: Array, op: Op = SOFTMAX) -> NDArray[np.float64]:
    """Return what an operation computes of each row of `x` (rows x cols), in float64.

    The operation's declared formulas say what that is. As in PyTorch, a row with a NaN or +inf, and
    a row of nothing but -inf, is NaN everywhere; an empty matrix gives an empty result. Of float64
    it is as exact as NumPy's own functions, whose errors are a tenth of what is allowed.
    Raises ValueError unless `x` has two dimensions.
    """
    rows, cols = x.shape
    with np.errstate(all="ignore"):  # a signalling NaN is invalid as soon as it is converted
        if rows == 0 or cols == 0:
            return x.astype(np.float64)
        names = {"x": op.input.value({"x": x.astype(np.float64)}, _FUNCTIONS)}
        names["row_max"] = names["x"].max(axis=1, keepdims=True)
        names["row_sum"] = op.sums.value(names, _FUNCTIONS).sum(axis=1, keepdims=True)
        result: NDArray[np.float64] = op.output.value(names, _FUNCTIONS)
        return result


@dataclass(frozen=True)
class Criterion:
    """What is asked of an output: of which operation, how it was computed and how it is stored.

    One thread adds up `serial_additions` values one after the other, in float64 if `in_double`. An
    element is rounded to the `element` of the output `roundings` times beyond what is computed.
    """

    serial_additions: int
    op: Op = SOFTMAX
    in_double: bool = False
    element: Element = FLOAT32
    roundings: int = 0

    @property
    def tolerance(self) -> float:
        """The largest error of an element before it is stored, relative to the error scale."""
        return tolerance(self.serial_additions) * self._fineness

    def row_sum_tolerance(self, cols: int) -> float:
        """Return how far the sum of an output row of `cols` elements may be from 1."""
        computed = row_sum_tolerance(self.serial_additions, cols) * self._fineness
        return computed + self.relative_slack + cols * self.absolute_slack

    @property
    def _fineness(self) -> float:
        return FLOAT64_ROUNDING / FLOAT32_ROUNDING if self.in_double else 1.0

    @property
    def relative_slack(self) -> float:
        """How far storing takes a number, relative to it: half a unit in the last place each."""
        return self.roundings * float(finfo(self.element).eps) / 2

    @property
    def absolute_slack(self) -> float:
        """How far storing takes a subnormal number: half the smallest one each."""
        return self.roundings * float(finfo(self.element).smallest_subnormal) / 2

    def stored(self, expected: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the results with what the output's type cannot hold as infinite as it is there."""
        largest = float(finfo(self.element).max)
        # What is less than half a unit beyond it is rounded down.
        unit = largest * float(finfo(self.element).eps) / 2
        limit = largest + unit / 2 if self.roundings else math.nextafter(largest, math.inf)
        return np.where(np.abs(expected) >= limit, np.copysign(np.inf, expected), expected)

    def slack(self, expected: NDArray[np.float64]) -> NDArray[np.float64] | float:
        """Return how far an element may be from its result because of how it is stored."""
        if not self.roundings:
            return 0.0
        return self.relative_slack * np.abs(expected) + self.absolute_slack


def criterion(spec: Spec, cols: int) -> Criterion:
    """Return what is asked of a spec's output for rows of `cols`.

    Parked exponentials are rounded where they wait, and once more as they become the output.
    """
    asked = criterion_of(spec.out_dtype, serial_additions(spec, cols), spec.op)
    return replace(asked, roundings=asked.roundings * (1 + spec.parks))


def criterion_for(source: Source, cols: int) -> Criterion:
    """Return what is asked of a source's output: as of its spec's, or of an adopted file's."""
    asked = criterion(source.spec, cols)
    return replace(asked, serial_additions=additions_of(source, cols))


def criterion_of(element: Element, serial_additions: int, op: Op = SOFTMAX) -> Criterion:
    """Return what is asked of an output of elements that each are rounded once."""
    is_computed_with = not element.compute
    return Criterion(
        serial_additions,
        op,
        in_double=is_computed_with and element.bytes > FLOAT32.bytes,
        element=element,
        roundings=0 if is_computed_with else 1,
    )


def tolerance(serial_additions: int) -> float:
    """Return the largest error allowed for an element, relative to its row's largest value.

    2e-6 covers the exponential, the tree of partial sums and the division in float32; rounding
    errors of the `serial_additions` that one thread makes one after the other add up like a
    random walk, one rounding (6e-8) wide each. That holds for about a thousand additions. After
    so many, small terms are below half the last place of the sum and are lost, all to the same
    side: on uniform [-10, 10) a correct float32 loop over 65536 terms is 5.7e-5 off (8.6e-10 for
    each), and over 8192 terms 1.2e-5.
    """
    lost_terms = 1e-9 * max(0, serial_additions - 1024)
    return 2e-6 + 6e-8 * math.sqrt(serial_additions) + lost_terms


def row_sum_tolerance(serial_additions: int, cols: int) -> float:
    """Return how far the sum of an output row of `cols` elements may be from 1.

    The sum's error has two parts. The divisor's error scales the whole row, and the row's largest
    value with it, so it is within `tolerance`. The exponentials' errors average out to the mean,
    weighted by y, of their relative errors; exp(x - max) in float32 has up to three roundings of
    the exponent, each an error of |x - max| roundings of the value, and that mean of |x - max| is
    the row's entropy less the log of its divisor, which is at most ln(cols).
    """
    return tolerance(serial_additions) + 3 * FLOAT32_ROUNDING * math.log(max(cols, 1))


class WorstElement(NamedTuple):
    """One element of the output: where it is, what the kernel wrote and what it should be."""

    row: int
    col: int
    got: float
    expected: float


@dataclass(frozen=True)
class Verdict:
    """Whether an output is the softmax of its input, and by how much it is off.

    Errors are those beyond what rounding to the output's type explains.
    `max_rel_error` is relative to the row's largest value, and `row_sum_error` is the largest
    distance of a row's sum from 1. Errors are infinite where only one of output and reference is
    NaN. `worst` is the element with the largest relative error (None for an empty matrix), and
    `reason` is empty when `ok`, otherwise one sentence with the place, in `row`, and the numbers.
    """

    ok: bool
    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    row_sum_error: float = 0.0
    worst: WorstElement | None = None
    row: int = 0
    reason: str = ""

    @property
    def errors(self) -> tuple[float | None, float | None]:
        """The absolute and the relative error, None where they are not finite: for JSON."""
        absolute, relative = self.max_abs_error, self.max_rel_error
        return (
            absolute if math.isfinite(absolute) else None,
            relative if math.isfinite(relative) else None,
        )


def judge(y: Array, x: Array, asked: Criterion) -> Verdict:
    """Judge `y` as the operation on the rows of `x` (both rows x cols), as `Reference` does."""
    return Reference(x).judge(y, asked)


class Reference:
    """The float64 results of `x` (rows x cols), against which any number of outputs is judged.

    It is computed in chunks of rows, on all cores, and kept unless it is very large.
    """

    def __init__(self, x: Array) -> None:
        self.x = x
        self._step = max(1, CHUNK_ELEMENTS // max(1, x.shape[1]))
        self._kept: dict[tuple[Op, int], NDArray[np.float64]] = {}

    def judge(self, y: Array, asked: Criterion) -> Verdict:
        """Judge `y` (rows x cols) as the operation on the reference's input.

        Every element must be the rounding of a number within `asked.tolerance` of the reference,
        every row's sum within `row_sum_tolerance` of 1 where outputs add up to 1, and what is not
        finite must be exactly where the reference has it.
        """
        if y.shape != self.x.shape:
            shapes = f"the output is {y.shape}, but the input is {self.x.shape}"
            return Verdict(ok=False, reason=shapes)
        if y.size == 0:
            return Verdict(ok=True)
        with ThreadPoolExecutor() as pool:
            chunks = list(pool.map(lambda start: self._measure(y, start, asked), self._starts))
        return verdict_of(chunks, asked, y.shape[1])

    def expected(self, op: Op = SOFTMAX) -> Iterator[NDArray[np.float64]]:
        """Yield the results, some rows after the other."""
        with ThreadPoolExecutor() as pool:
            yield from pool.map(lambda start: self._expected(start, op), self._starts)

    @property
    def _starts(self) -> range:
        return range(0, self.x.shape[0], self._step)

    def _measure(self, y: Array, start: int, asked: Criterion) -> Errors:
        expected = asked.stored(self._expected(start, asked.op))
        return _measure_chunk(y[start : start + self._step], expected, start, asked)

    def _expected(self, start: int, op: Op) -> NDArray[np.float64]:
        if (op, start) in self._kept:
            return self._kept[op, start]
        expected = reference64(self.x[start : start + self._step], op)
        if self.x.size <= MAX_KEPT_ELEMENTS:
            self._kept[op, start] = expected
        return expected


def verdict_of(chunks: Sequence[Errors], asked: Criterion, cols: int) -> Verdict:
    """Return the verdict on an output of rows of `cols`, of the errors in all parts of it."""
    worst = max(chunks, key=lambda chunk: chunk.max_rel_error)
    sums = max(chunks, key=lambda chunk: chunk.row_sum_error)
    wrong_element = _element_reason(worst, asked)
    reason = wrong_element or _sum_reason(sums, asked.row_sum_tolerance(cols))
    return Verdict(
        ok=not reason,
        max_abs_error=max(chunk.max_abs_error for chunk in chunks),
        max_rel_error=worst.max_rel_error,
        row_sum_error=sums.row_sum_error,
        worst=worst.worst,
        row=worst.worst.row if wrong_element else sums.worst_sum_row,
        reason=reason,
    )


@dataclass(frozen=True)
class Errors:
    """The largest errors within some rows, and where they are."""

    max_abs_error: float
    max_rel_error: float
    worst: WorstElement
    row_sum_error: float
    worst_sum_row: int


@np.errstate(all="ignore")
def _measure_chunk(y: Array, expected: NDArray[np.float64], start: int, asked: Criterion) -> Errors:
    op = asked.op
    got = y.astype(np.float64)
    finite = np.isfinite(expected)
    names = {"y": expected, "y_max": expected.max(axis=1, keepdims=True)}
    error = np.maximum(np.abs(got - expected) - asked.slack(expected), 0.0)
    sum_error = np.abs(got.sum(axis=1) - 1.0) if op.sum_is_one else np.zeros(len(got))
    # Where the reference is not finite, only the same value is right.
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    error = np.where(finite & np.isfinite(got), error, np.where(same, 0.0, np.inf))
    relative = error / np.where(finite, op.error_scale.value(names, _FUNCTIONS), 1.0)
    # Without a finite reference there is no sum; elements that are NaN have an error already.
    sum_error[np.isnan(sum_error) | ~finite.all(axis=1)] = 0.0
    row, col = (int(i) for i in np.unravel_index(np.argmax(relative), relative.shape))
    sum_row = int(np.argmax(sum_error))
    return Errors(
        max_abs_error=float(error.max()),
        max_rel_error=float(relative[row, col]),
        worst=WorstElement(start + row, col, float(got[row, col]), float(expected[row, col])),
        row_sum_error=float(sum_error[sum_row]),
        worst_sum_row=start + sum_row,
    )


def _element_reason(chunk: Errors, asked: Criterion) -> str:
    row, col, got, expected = chunk.worst
    place = f"element (row {row}, column {col})"
    if math.isnan(got) and not math.isnan(expected):
        return f"{place} is not written or NaN; it should be {expected:.9g}"
    if math.isnan(expected) and not math.isnan(got):
        return f"{place} is {got:.9g}, but the row's NaN or infinities make it NaN"
    allowed = asked.tolerance
    if chunk.max_rel_error <= allowed:
        return ""
    beyond = f" beyond the rounding to {asked.element}" if asked.roundings else ""
    return (
        f"{place} is {got:.9g} instead of {expected:.9g}: {chunk.max_rel_error:.2e} of "
        f"{asked.op.error_words}{beyond}, where {allowed:.2e} is allowed"
    )


def _sum_reason(chunk: Errors, allowed: float) -> str:
    if chunk.row_sum_error <= allowed:
        return ""
    return (
        f"row {chunk.worst_sum_row} sums to 1 only within {chunk.row_sum_error:.2e}, where "
        f"{allowed:.2e} is allowed"
    )
