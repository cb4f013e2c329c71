"""Measures cases: each is run, judged against the float64 reference, and timed if it is right.

Every case runs in a worker process, so one that crashes or hangs costs its own row only.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum

from kgen import gpu
from kgen.errors import CheckFailed, UsageError
from kgen.evidence import inputs
from kgen.evidence.inputs import Matrix
from kgen.evidence.reference import Verdict, judge
from kgen.evidence.worker import Worker
from kgen.gpu import Timing
from kgen.launch import LaunchPlan
from kgen.sources.source import Source
from kgen.toolchain import CompileOptions

RunHost = Callable[[Source, LaunchPlan, Matrix], tuple[Matrix, float]]
Run = Callable[[Source, LaunchPlan, Matrix, CompileOptions], Matrix]
Time = Callable[..., Timing]

# The GPU waits for the host when issuing a call takes all of the call's time, or nearly. The median
# batch is compared: whatever disturbs the host lengthens single batches.
HOST_BOUND_SHARE = 0.9


class Outcome(StrEnum):
    """How a case ended; only the times of an `ok` row exist.

    `refused`: the version or the GPU cannot hold the shape; `wrong`: it ran, and the output is not
    the softmax; `failed`: it did not compile, broke a rule of CUDA, crashed or hung.
    """

    OK = "ok"
    REFUSED = "refused"
    WRONG = "wrong"
    FAILED = "failed"


@dataclass(frozen=True)
class Case:
    """One variant on a rows x cols matrix: a source with its plan, or the `reason` for none.

    `serial_additions` is how many values one of its threads adds up one after the other.
    """

    variant: str
    rows: int
    cols: int
    source: Source | None = None
    plan: LaunchPlan | None = None
    serial_additions: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Row:
    """What was found of one case; `reason` says why it is not ok.

    Times are microseconds of a softmax call: the mean over all calls, then the least, the median
    and the largest mean of a batch. `gb_per_s` counts the matrix read once and written once, in
    10^9 bytes. `host_us_per_launch` is what the host takes to issue a launch; where `host_bound`,
    the time shows that and not the kernel. `registers` are a thread's, in the kernel with most.
    Errors are absolute and relative to the row's largest value, None where not finite.
    """

    variant: str
    rows: int
    cols: int
    outcome: Outcome
    reason: str = ""
    mean_us: float | None = None
    min_us: float | None = None
    median_us: float | None = None
    max_us: float | None = None
    gb_per_s: float | None = None
    launches_per_call: int | None = None
    host_us_per_launch: float | None = None
    host_bound: bool = False
    registers: int | None = None
    max_abs_error: float | None = None
    max_rel_error: float | None = None


@dataclass(frozen=True, kw_only=True)
class Method:
    """How to measure: on which input, compiled how, and how many calls."""

    input_name: str = "uniform"
    seed: int = 42
    options: CompileOptions = field(default_factory=CompileOptions)
    warmup: int = 100
    launches: int = 1000
    batches: int = 10

    def __str__(self) -> str:
        """Return the method in words, for the results that it led to."""
        return (
            f"Input {self.input_name}, seed {self.seed}; nvcc {' '.join(self.options.flags())}. "
            "The output is filled with NaN bytes, checked against a float64 softmax, and then "
            f"the calls are timed with CUDA events: {self.warmup} to warm up, {self.launches} "
            f"timed in {self.batches} batches, the same buffers every time, so small problems "
            "find their data in the L2 cache. Allocation, copies and checks are outside; clearing "
            "a workspace is inside. mean_us is the mean over all calls, and min_us, median_us and "
            "max_us are of the batches' means. Host versions are timed on the CPU."
        )


DEFAULT_METHOD = Method()


def measure(
    cases: Iterable[Case],
    run_host: RunHost,
    *,
    method: Method = DEFAULT_METHOD,
    timeout_s: float = 300.0,
    run: Run = gpu.run,
    time: Time = gpu.time_launches,
) -> Iterator[Row]:
    """Yield a row for every case, in order, as soon as it is measured.

    `run_host(source, plan, x)` returns the output of a host version and its microseconds; `run`
    and `time` do the rest, with the signatures of `gpu.run` and `gpu.time_launches`. All three
    must be picklable. A case may take `timeout_s` seconds, compiling included. Raises MissingTool
    when there is no GPU or compiler to measure with.
    """
    measure_one = functools.partial(
        measure_case, run_host=run_host, method=method, run=run, time=time
    )
    with Worker(measure_one) as worker:
        for case in cases:
            yield _measure_isolated(worker, case, timeout_s)


def _measure_isolated(worker: Worker[Case, Row], case: Case, timeout_s: float) -> Row:
    if case.reason:
        return _without_times(case, Outcome.REFUSED, case.reason)
    try:
        return worker.apply(case, timeout_s)
    except UsageError as refusal:
        return _without_times(case, Outcome.REFUSED, str(refusal))
    except CheckFailed as failure:
        worker.discard()  # its CUDA context may be lost
        return _without_times(case, Outcome.FAILED, str(failure))


def measure_case(case: Case, *, run_host: RunHost, method: Method, run: Run, time: Time) -> Row:
    """Measure one case in this process. Raises the KgenError that running or timing it raises."""
    source, plan = case.source, case.plan
    assert source and plan, "a case without a reason has a source and a plan"
    if not plan.launches:
        raise UsageError(f"a matrix of {case.rows} x {case.cols} has nothing to time")
    x = _make_input(method.input_name, case.rows, case.cols, method.seed)
    if source.spec.is_host:
        y, microseconds = run_host(source, plan, x)
    else:
        y = run(source, plan, x, method.options)
    row = _judged(case, judge(y, x, case.serial_additions))
    if row.outcome is not Outcome.OK:
        return row
    if source.spec.is_host:
        return _with_times(row, (microseconds,))
    counts = {"warmup": method.warmup, "launches": method.launches, "batches": method.batches}
    return _with_timing(row, time(source, plan, x, method.options, **counts), len(plan.launches))


# Cases of one shape usually follow each other.
_make_input = functools.lru_cache(maxsize=1)(inputs.make)


def _without_times(case: Case, outcome: Outcome, reason: str) -> Row:
    return Row(case.variant, case.rows, case.cols, outcome, reason)


def _judged(case: Case, verdict: Verdict) -> Row:
    outcome = Outcome.OK if verdict.ok else Outcome.WRONG
    return replace(
        _without_times(case, outcome, verdict.reason),
        max_abs_error=_finite(verdict.max_abs_error),
        max_rel_error=_finite(verdict.max_rel_error),
    )


def _with_times(row: Row, batch_us: tuple[float, ...]) -> Row:
    mean_us = statistics.fmean(batch_us)
    moved_bytes = 2 * row.rows * row.cols * 4
    return replace(
        row,
        mean_us=mean_us,
        min_us=min(batch_us),
        median_us=statistics.median(batch_us),
        max_us=max(batch_us),
        gb_per_s=moved_bytes / mean_us / 1e3,
    )


def _with_timing(row: Row, timing: Timing, launches: int) -> Row:
    row = _with_times(row, timing.batch_us)
    return replace(
        row,
        launches_per_call=launches,
        host_us_per_launch=timing.host_us / launches,
        host_bound=timing.host_us >= HOST_BOUND_SHARE * statistics.median(timing.batch_us),
        registers=timing.registers,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
