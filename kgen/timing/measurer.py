"""The process that a benchmark's kernels run in: verifies candidates and takes samples of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol as Interface

import numpy as np

from kgen.adopted.inputs import ORDINARY
from kgen.evidence.check import mixed_rows
from kgen.evidence.inputs import ALL_INPUTS, Matrix, make
from kgen.evidence.reference import Reference, Verdict
from kgen.gpu.nvml import Sensors, sensors
from kgen.gpu.rotation import Sample
from kgen.numpy_types import rounded
from kgen.specs.choice import Element
from kgen.specs.types import BOTH_FLOAT32, Types
from kgen.store.measurement import Kind
from kgen.timing.candidates import Candidate
from kgen.timing.gpu_judge import DeviceOutput
from kgen.timing.protocol import Protocol


@dataclass(frozen=True)
class Prepared:
    """What verifying found; `reason` is empty if the output is right."""

    reason: str
    max_abs_error: float | None
    max_rel_error: float | None
    calls_per_sample: int | None = None
    remark: str = ""
    package: str = ""


class TimedCandidate(Interface):
    """A candidate that samples can be taken of."""

    @property
    def calls(self) -> int: ...
    @property
    def remark(self) -> str: ...
    @property
    def package(self) -> str: ...
    def sample(self) -> Sample: ...
    def outputs(self) -> Sequence[Matrix | DeviceOutput]: ...
    def free(self) -> None: ...


class Device(Interface):
    """Where candidates run: `kgen.timing.gpu_buffers.GpuBuffers`, or a test's own."""

    def run(self, candidate: Candidate, x: Matrix) -> Matrix | DeviceOutput: ...
    def load(self, candidate: Candidate) -> TimedCandidate: ...


# The input, the protocol and the output's type, to the buffers for them.
MakeDevice = Callable[[Matrix, Protocol, Element], Device]
Answer = Prepared | Sample | Sensors | None


def open_gpu_buffers(x: Matrix, protocol: Protocol, out_dtype: Element) -> Device:
    """Return the GPU of this process with buffers for `x`. Raises MissingTool without one."""
    from kgen.timing.gpu_buffers import GpuBuffers

    return GpuBuffers(x, protocol, out_dtype)


class Measurer:
    """Answers commands about candidates on rows x cols matrices; picklable until its first.

    `types` are those of the matrices that they read and write.
    A candidate is verified on rows of every kind of input in guarded buffers, and on the
    benchmark's own input in the buffers that are timed; only then are samples taken of it. A peer
    must be right on the benchmark's input alone, somebody's kernel on ordinary numbers.
    """

    def __init__(
        self,
        rows: int,
        cols: int,
        protocol: Protocol,
        open_device: MakeDevice = open_gpu_buffers,
        types: Types = BOTH_FLOAT32,
    ) -> None:
        self.rows, self.cols, self.protocol, self.types = rows, cols, protocol, types
        self.open_device = open_device
        self.loaded: dict[str, TimedCandidate] = {}

    @functools.cached_property
    def timed_input(self) -> Reference:
        """The benchmark's input, and what is expected of it."""
        how = self.protocol
        return Reference(make(how.input_name, self.rows, self.cols, how.seed, self.types.dtype))

    @functools.cached_property
    def mixed_input(self) -> Reference:
        """Rows of every kind of input in turn, and what is expected of them."""
        return Reference(mixed_rows(ALL_INPUTS, self.rows, self.cols, self.types.dtype))

    @functools.cached_property
    def plain_input(self) -> Reference:
        """Rows of the inputs that somebody's kernel has to be right on."""
        return Reference(mixed_rows(ORDINARY, self.rows, self.cols))

    @functools.cached_property
    def device(self) -> Device:
        """The device with the benchmark's buffers."""
        return self.open_device(self.timed_input.x, self.protocol, self.types.out_dtype)

    def __call__(self, command: Callable[[Measurer], Answer]) -> Answer:
        """Answer a command: an operator.methodcaller of one of the methods below.

        Raises the KgenError that running the candidate raises.
        """
        return command(self)

    def sensors(self) -> Sensors:
        """Read the GPU's sensors."""
        return sensors()

    def sample(self, candidate: Candidate) -> Sample:
        """Take a sample of a candidate."""
        return self._load(candidate).sample()

    def drop(self, candidate: Candidate) -> None:
        """Give back what a candidate has loaded; a later sample loads it again."""
        if timed := self.loaded.pop(candidate.name, None):
            timed.free()

    def _load(self, candidate: Candidate) -> TimedCandidate:
        if candidate.name not in self.loaded:
            timed = _HostCandidate(candidate, self.timed_input.x) if candidate.is_host else None
            self.loaded[candidate.name] = timed or self.device.load(candidate)
        return self.loaded[candidate.name]

    def prepare(self, candidate: Candidate) -> Prepared:
        """Verify a candidate and make it ready."""
        odd = self._odd_inputs(candidate)
        if odd and candidate.kind is not Kind.PEER and not candidate.is_adopted:
            return _prepared(odd)
        if odd and candidate.is_adopted and (wrong := self._wrong_on(candidate, self.plain_input)):
            return _prepared(wrong)
        timed = self._load(candidate)
        verdict = Verdict(ok=True)
        for y in timed.outputs():
            verdict = _worse(verdict, _judge(candidate, y, self.timed_input))
        if not verdict.ok:
            return _prepared(verdict)
        # Nobody promised our semantics for what is not ours: its time counts, the rest is told.
        remarks = [f"wrong on rows of odd values: {odd.reason}"] if odd else []
        remarks += [timed.remark] if timed.remark else []
        if candidate.plan and candidate.plan.in_place:
            remarks.append("it works in place, and a copy of the input is timed with it")
        return replace(
            _prepared(verdict),
            calls_per_sample=timed.calls,
            remark="; ".join(remarks),
            package=timed.package,
        )

    def _odd_inputs(self, candidate: Candidate) -> Verdict | None:
        """Return the verdict on rows of every kind of input if it is a bad one."""
        return None if candidate.is_host else self._wrong_on(candidate, self.mixed_input)

    def _wrong_on(self, candidate: Candidate, reference: Reference) -> Verdict | None:
        verdict = _judge(candidate, self.device.run(candidate, reference.x), reference)
        return None if verdict.ok else verdict


class _HostCandidate:
    """A version for the host, timed by the host's clock."""

    calls = 1
    remark = "on the host"
    package = ""

    def __init__(self, candidate: Candidate, x: Matrix) -> None:
        self.candidate, self.x = candidate, x

    def _run(self) -> tuple[Matrix, float]:
        from kgen.cpu.host import time_host
        from kgen.sources.source import Source

        assert isinstance(self.candidate.source, Source) and self.candidate.plan
        return time_host(self.candidate.source, self.candidate.plan, self.x)

    def sample(self) -> Sample:
        return Sample(self._run()[1], 0.0)

    def outputs(self) -> list[Matrix]:
        return [self._run()[0]]

    def free(self) -> None:
        pass


def _judge(candidate: Candidate, y: Matrix | DeviceOutput, reference: Reference) -> Verdict:
    if not isinstance(y, np.ndarray):
        return y.judge(reference, candidate.criterion)
    if candidate.kind is Kind.COPY:
        same = _is_copy(y, rounded(reference.x, candidate.types.out_dtype))
        return Verdict(ok=same, reason="" if same else "the copy differs from what it copies")
    return reference.judge(y, candidate.criterion)


def _is_copy(y: Matrix, x: Matrix) -> bool:
    """Whether all bits are the same, but for those of a NaN, which a conversion may change."""
    bits = f"u{x.itemsize}"
    same = (y.view(bits) == x.view(bits)) | (np.isnan(y) & np.isnan(x))
    return y.dtype == x.dtype and bool(same.all())


def _worse(first: Verdict, second: Verdict) -> Verdict:
    if not first.ok or not second.ok:
        return first if not first.ok else second
    return max(first, second, key=lambda verdict: verdict.max_rel_error)


def _prepared(verdict: Verdict) -> Prepared:
    return Prepared(verdict.reason, *verdict.errors)
