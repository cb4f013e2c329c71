"""Measures candidates on one shape: compiled, verified, timed in rounds, each in its own row.

Kernels run in a worker process, so one that crashes or hangs costs its own row only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kgen.errors import CheckFailed, CompileFailed, KgenError, UsageError
from kgen.gpu.nvml import Sensors
from kgen.store.measurement import Kind, Measurement, Outcome, Provenance
from kgen.timing.candidates import Candidate
from kgen.timing.peers import PeerMissing
from kgen.timing.protocol import Protocol
from kgen.timing.rounds import Rounds, run_rounds
from kgen.timing.station import MakeDevice, Prepare, Sense, Station, Take, open_stage
from kgen.timing.summary import blank, summarized
from kgen.timing.worker import Worker
from kgen.toolchain import Binary, compile_many

Binaries = Mapping[str, Binary | CompileFailed]
# However fast the baseline, a sample may take this long: the first one may have to set things up.
LEAST_STOP_S = 10.0


class Bench:
    """One run on one shape. `prepare` candidates, then `time` them, then `close`.

    `prepare_s` is how many seconds preparing a candidate may take.
    """

    def __init__(
        self,
        rows: int,
        cols: int,
        protocol: Protocol,
        provenance: Provenance,
        *,
        prepare_s: float = 120.0,
        open_device: MakeDevice = open_stage,
    ) -> None:
        self.protocol, self.provenance, self.prepare_s = protocol, provenance, prepare_s
        self.worker: Worker[Any, Any] = Worker(Station(rows, cols, protocol, open_device))
        self.found: dict[str, Measurement] = {}
        self.stop_s = LEAST_STOP_S

    def close(self) -> None:
        """Stop the process that the kernels run in."""
        self.worker.discard()

    def compile(self, candidates: Sequence[Candidate]) -> Binaries:
        """Compile what is a kernel, by candidate's name, as many at once as there are cores."""
        kernels = [one for one in candidates if one.source and not one.is_host]
        sources = [one.source for one in kernels if one.source]
        arch = self.provenance.arch
        compiled = compile_many(sources, arch, self.protocol.options) if sources else []
        return {one.name: binary for one, binary in zip(kernels, compiled, strict=True)}

    def prepare(self, candidate: Candidate, binaries: Binaries) -> Measurement:
        """Verify a candidate and return its row, without times yet."""
        row = blank(candidate, self.protocol, self.provenance, binaries.get(candidate.name))
        if candidate.reason:
            row = replace(row, outcome=Outcome.REFUSED, reason=candidate.reason)
        elif row.outcome is Outcome.OK:
            row = self._verify(candidate, row)
        self.found[candidate.name] = row
        return row

    def _verify(self, candidate: Candidate, row: Measurement) -> Measurement:
        outcome = self._ask(Prepare(candidate), self.prepare_s)
        if isinstance(outcome, KgenError):
            return _unmeasured(row, outcome)
        return replace(
            row,
            outcome=Outcome.WRONG if outcome.reason else Outcome.OK,
            reason=outcome.reason,
            max_abs_error=outcome.max_abs_error,
            max_rel_error=outcome.max_rel_error,
            calls_per_sample=outcome.calls_per_sample,
            remark=outcome.remark,
        )

    def _ask(self, command: object, timeout_s: float) -> Any:
        """Return the worker's answer, or the error that concerns this candidate alone."""
        try:
            return self.worker.apply(command, timeout_s)
        except (UsageError, PeerMissing) as refusal:
            return refusal
        except CheckFailed as failure:
            self.worker.discard()  # its CUDA context may be lost
            return failure

    def time(
        self,
        candidates: Sequence[Candidate],
        baseline: str,
        keep: Callable[[Mapping[str, float]], None] = lambda round: None,
    ) -> tuple[list[Measurement], Rounds]:
        """Take samples of what was prepared and found right; return all rows, and the rounds."""
        ready = {one.name: one for one in candidates if self.found[one.name].outcome is Outcome.OK}
        before = self._sensors()
        host_us: dict[str, float] = {}

        def take(name: str) -> float | None:
            sample = self._ask(Take(ready[name]), self.stop_s)
            if isinstance(sample, KgenError):
                self.found[name] = _unmeasured(self.found[name], sample)
                return None
            host_us[name] = sample.host_us
            return float(sample.us)

        self._set_stop(take(baseline) if baseline in ready else None, baseline)
        taken = run_rounds(list(ready), self.protocol, take, keep)
        sensed = {"before": before, "after": self._sensors()}
        rows = [self.found[one.name] for one in candidates]
        return summarized(rows, taken.samples, host_us, baseline, sensed, self.protocol), taken

    def _set_stop(self, us: float | None, baseline: str) -> None:
        """Set how long a sample may take, now that the baseline's first one is known."""
        if us:
            calls = self.found[baseline].calls_per_sample or 1
            # A sample replays its calls twice.
            longest = 2 * self.protocol.stop_multiple * us * calls / 1e6
            self.stop_s = max(LEAST_STOP_S, longest)

    def _sensors(self) -> Sensors:
        answer = self._ask(Sense(), self.prepare_s)
        return answer if isinstance(answer, Sensors) else Sensors()


def _unmeasured(row: Measurement, error: KgenError) -> Measurement:
    outcome = Outcome.FAILED
    if isinstance(error, PeerMissing):
        outcome = Outcome.SKIPPED
    elif isinstance(error, UsageError):
        outcome = Outcome.REFUSED
    return replace(row, outcome=outcome, reason=str(error), max_abs_error=None, max_rel_error=None)


def measure(
    candidates: Sequence[Candidate],
    protocol: Protocol,
    provenance: Provenance,
    *,
    baseline: str | None = None,
    prepare_s: float = 120.0,
    open_device: MakeDevice = open_stage,
    keep: Callable[[Measurement], None] = lambda row: None,
) -> list[Measurement]:
    """Measure candidates of one shape and return their rows, in order.

    `baseline` names the candidate that speed-ups compare with, by default the first that is right.
    `keep` gets each row as soon as it is final. Raises MissingTool when there is no GPU or compiler
    to measure with; KeyboardInterrupt after keeping what the finished rounds say.
    """
    first = candidates[0]
    bench = Bench(
        first.rows,
        first.cols,
        protocol,
        provenance,
        prepare_s=prepare_s,
        open_device=open_device,
    )
    try:
        binaries = bench.compile(candidates)
        for candidate in candidates:
            row = bench.prepare(candidate, binaries)
            if row.outcome is not Outcome.OK:
                keep(row)
        rows, taken = bench.time(candidates, baseline or _first_right(bench.found))
    finally:
        bench.close()
    for row in rows:
        if row.samples_us or bench.found[row.variant].outcome is Outcome.OK:
            keep(row)
    if taken.interrupted:
        raise KeyboardInterrupt
    return rows


def _first_right(found: Mapping[str, Measurement]) -> str:
    right = (row for row in found.values() if row.outcome is Outcome.OK)
    return next((row.variant for row in right if row.kind is not Kind.COPY), "")
