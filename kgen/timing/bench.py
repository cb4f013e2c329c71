"""Measures candidates on one shape: compiled, verified, timed in rounds, each in its own row.

Kernels run in a worker process, so one that crashes or hangs costs its own row only.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import methodcaller
from typing import Any
from typing import Protocol as Interface

from kgen.errors import CheckFailed, KgenError, MachineTrouble, MissingTool, UsageError
from kgen.execute import find_target
from kgen.gpu.nvml import Sensors
from kgen.specs.types import BOTH_FLOAT32, Types, common_types
from kgen.store.measurement import Kind, Measurement, Outcome, Provenance
from kgen.timing.candidates import Candidate, compiled, line_up
from kgen.timing.measurer import MakeDevice, Measurer, open_gpu_buffers
from kgen.timing.peers import Peer
from kgen.timing.protocol import Protocol
from kgen.timing.rounds import Rounds, run_rounds
from kgen.timing.summary import Sensed, blank, outcome_of, summarized
from kgen.timing.worker import Worker

# However fast the baseline, a sample may take this long: the first one may have to set things up.
LEAST_STOP_S = 10.0


class Record(Interface):
    """Who is told of rows: `kgen.store.journal.Journal`, for one."""

    def begin(self, row: Measurement, samples_us: Sequence[float] = ()) -> None: ...
    def add_round(self, rows: Mapping[str, Measurement], taken: Mapping[str, float]) -> None: ...
    def finish(self, row: Measurement) -> None: ...


class NoRecord:
    """Keeps nothing."""

    def begin(self, *heard: object, **named: object) -> None:
        """Do nothing."""

    add_round = finish = begin


class Bench:
    """One run on one shape. `prepare` candidates, then `time` and `summarize` them, then `close`.

    `found` has every candidate's row as it is known.

    All candidates have the same `types`. `prepare_s` is how many seconds preparing one may take.
    """

    def __init__(
        self,
        rows: int,
        cols: int,
        protocol: Protocol,
        provenance: Provenance,
        *,
        types: Types = BOTH_FLOAT32,
        prepare_s: float = 120.0,
        open_device: MakeDevice = open_gpu_buffers,
    ) -> None:
        self.protocol, self.provenance, self.prepare_s = protocol, provenance, prepare_s
        self.worker: Worker[Any, Any] = Worker(Measurer(rows, cols, protocol, open_device, types))
        self.found: dict[str, Measurement] = {}
        self.loaded: set[str] = set()
        self.host_us: dict[str, float] = {}
        self.before: Sensors | None = None
        self.stop_s = LEAST_STOP_S

    def close(self) -> None:
        """End the process that the kernels run in."""
        self.worker.close()

    def prepare(self, candidate: Candidate) -> Measurement:
        """Verify a candidate, compiled if it is a kernel; return its row, without times yet."""
        row = blank(candidate, self.protocol, self.provenance)
        if row.outcome is Outcome.OK:
            row = self._verify(candidate, row)
        self.found[candidate.name] = row
        return row

    def is_ready(self, candidate: Candidate) -> bool:
        """Tell whether a candidate was prepared, found right and has not failed since."""
        return self.found[candidate.name].outcome is Outcome.OK

    def _verify(self, candidate: Candidate, row: Measurement) -> Measurement:
        outcome = self._ask(methodcaller("prepare", candidate), self.prepare_s, candidate)
        if isinstance(outcome, KgenError):
            return _unmeasured(row, outcome)
        self.loaded.add(candidate.name)
        return replace(
            row,
            outcome=Outcome.WRONG if outcome.reason else Outcome.OK,
            reason=outcome.reason,
            max_abs_error=outcome.max_abs_error,
            max_rel_error=outcome.max_rel_error,
            calls_per_sample=outcome.calls_per_sample,
            remark=outcome.remark,
            package=outcome.package,
        )

    def _ask(self, command: object, timeout_s: float, candidate: Candidate | None = None) -> Any:
        """Return the worker's answer, or the error that concerns this candidate alone."""
        try:
            return self.worker.apply(command, timeout_s)
        except UsageError as refusal:
            return refusal
        except MissingTool as missing:
            if candidate and candidate.peer:
                return missing
            raise
        except (CheckFailed, MachineTrouble) as failure:
            self.worker.discard()  # its CUDA context may be lost
            self.loaded.clear()
            return failure

    def time(
        self,
        candidates: Sequence[Candidate],
        record: Record,
        protocol: Protocol | None = None,
        earlier: Mapping[str, Sequence[float]] | None = None,
    ) -> Rounds:
        """Take rounds of samples of candidates that were found right, after `earlier` ones.

        `protocol` may differ from the run's in its rounds. A candidate that fails drops out, and
        `record` is told so at once.
        """
        ready = {one.name: one for one in candidates}
        self.before = self.before or self._sensors()

        def take(name: str) -> float | None:
            sample = self._sample(ready[name])
            if isinstance(sample, KgenError):
                self.found[name] = _unmeasured(self.found[name], sample)
                record.finish(self.found[name])
                return None
            self.host_us[name] = sample.host_us
            return float(sample.us)

        keep = functools.partial(record.add_round, self.found)
        return run_rounds(list(ready), protocol or self.protocol, take, keep, earlier)

    def summarize(
        self, samples: Mapping[str, Sequence[float]], baseline: str = "", is_complete: bool = True
    ) -> list[Measurement]:
        """Return the rows of the candidates that have samples, and know them from now on."""
        # Who interrupts does not wait for what may hang, nor is its answer the sensors'.
        after = self._sensors() if is_complete else Sensors()
        sensed = Sensed(self.before or Sensors(), after)
        rows = [self.found[name] for name, taken in samples.items() if taken]
        rows = [row for row in rows if row.outcome is Outcome.OK]
        rows = summarized(rows, samples, baseline, self.protocol, self.host_us, sensed)
        rows = [replace(row, is_complete=is_complete) for row in rows]
        self.found |= {row.variant: row for row in rows}
        return rows

    def drop(self, candidate: Candidate) -> None:
        """Give back what a candidate has loaded on the GPU."""
        self.loaded.discard(candidate.name)
        self._ask(methodcaller("drop", candidate), self.prepare_s)

    def limit_by(self, baseline: Candidate) -> None:
        """Set how long a sample may take, by one of the baseline."""
        sample = self._sample(baseline)
        if not isinstance(sample, KgenError):
            calls = self.found[baseline.name].calls_per_sample or 1
            # A sample replays its calls twice.
            longest = 2 * self.protocol.stop_multiple * sample.us * calls / 1e6
            self.stop_s = max(LEAST_STOP_S, longest)

    def _sample(self, candidate: Candidate) -> Any:
        """Return a sample, or the error; a new worker first makes the candidate ready again."""
        loading_s = 0.0 if candidate.name in self.loaded else self.prepare_s
        self.loaded.add(candidate.name)
        return self._ask(methodcaller("sample", candidate), loading_s + self.stop_s, candidate)

    def _sensors(self) -> Sensors:
        answer = self._ask(methodcaller("sensors"), self.prepare_s)
        return answer if isinstance(answer, Sensors) else Sensors()


def _unmeasured(row: Measurement, error: KgenError) -> Measurement:
    return replace(
        row,
        outcome=outcome_of(error),
        reason=str(error),
        max_abs_error=None,
        max_rel_error=None,
    )


def measure(
    candidates: Sequence[Candidate],
    protocol: Protocol,
    provenance: Provenance,
    *,
    baseline: str | None = None,
    prepare_s: float = 120.0,
    open_device: MakeDevice = open_gpu_buffers,
    record: Record | None = None,
) -> list[Measurement]:
    """Measure candidates of one shape and type and return their rows, in order.

    `baseline` names the candidate that speed-ups compare with, by default the first that is right.
    `record` is told of everything as soon as it is known. Raises UsageError for candidates of
    different types, MissingTool when there is no GPU or compiler to measure with; KeyboardInterrupt
    after recording what the finished rounds say.
    """
    record = record or NoRecord()
    first = candidates[0]
    bench = Bench(
        first.rows,
        first.cols,
        protocol,
        provenance,
        types=common_types({one.types: one.name for one in candidates}),
        prepare_s=prepare_s,
        open_device=open_device,
    )
    try:
        candidates = compiled(candidates, provenance.arch, protocol.options)
        for candidate in candidates:
            row = bench.prepare(candidate)
            (record.begin if row.outcome is Outcome.OK else record.finish)(row)
        ready = {one.name: one for one in candidates if bench.is_ready(one)}
        baseline = baseline or _first_right(bench.found)
        if baseline in ready:
            bench.limit_by(ready[baseline])
        taken = bench.time(list(ready.values()), record)
        bench.summarize(taken.samples, baseline, is_complete=not taken.interrupted)
    finally:
        bench.close()
    for name in ready:
        if bench.found[name].samples_us:
            record.finish(bench.found[name])
    if taken.interrupted:
        raise KeyboardInterrupt
    return [bench.found[candidate.name] for candidate in candidates]


def _first_right(found: Mapping[str, Measurement]) -> str:
    right = (row for row in found.values() if row.outcome is Outcome.OK)
    return next((row.variant for row in right if row.kind is not Kind.COPY), "")


def measure_shape(
    targets: Sequence[str],
    rows: int,
    cols: int,
    protocol: Protocol,
    provenance: Provenance,
    *,
    peers: Sequence[Peer] = (),
    baseline: str | None = None,
    record: Record | None = None,
) -> list[Measurement]:
    """Measure variants or edited files by name, peers, and copies of the same bytes, in one run.

    Raises UsageError for an unknown variant, and what `measure` raises.
    """
    candidates = line_up(map(find_target, targets), peers, rows, cols)
    return measure(candidates, protocol, provenance, baseline=baseline, record=record)
