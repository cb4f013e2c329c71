"""The GPU as a benchmark uses it: verified runs, and samplers over the buffers of the benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kgen.errors import CheckFailed
from kgen.gpu.call import Kernels
from kgen.gpu.device import device_info, gpu
from kgen.gpu.execute import called
from kgen.gpu.memory import Buffer, Matrix, MatrixBuffer, fetch
from kgen.gpu.rotation import Issue, LaunchSampler, ReplaySampler, Rotation, Sample
from kgen.numpy_types import element_of
from kgen.specs.choice import Element
from kgen.specs.declared import FLOAT32
from kgen.store.measurement import Kind
from kgen.timing.candidates import Candidate
from kgen.timing.gpu_judge import DeviceOutput, GpuJudge
from kgen.timing.protocol import L2, L2_MULTIPLE, Protocol
from kgen.toolchain import Binary

PROBE_CALLS = 16
# Outputs of so many elements and more are judged on the GPU.
LARGE = 1 << 20
Bind = Callable[[MatrixBuffer, MatrixBuffer], Issue]


class GpuCandidate:
    """A candidate bound to the benchmark's buffers."""

    def __init__(self, stage: GpuBuffers, candidate: Candidate) -> None:
        self.stage, self.candidate = stage, candidate
        bind = stage.binder(candidate)
        self.package = candidate.peer.package() if candidate.peer else ""
        self.issues = [bind(x, y) for x, y in stage.rotation.pairs]
        self.sampler = stage.sampler(self.issues)

    @property
    def calls(self) -> int:
        """Calls of a sample."""
        return self.sampler.calls

    @property
    def remark(self) -> str:
        """What a reader should know of the buffers."""
        return self.stage.remark

    def sample(self) -> Sample:
        """Take one sample."""
        with self.stage.active("its timed launches"):
            return self.sampler.sample()

    def free(self) -> None:
        """Give back what is this candidate's alone."""
        with self.stage.active("freeing it"):
            self.sampler.free()
            self.issues.clear()

    def outputs(self) -> list[Matrix | DeviceOutput]:
        """Return what the first and the last call of a sample write over poison."""
        with self.stage.active("its verified launches"):
            self.stage.rotation.poison()
            results = self.sampler.outputs()
            self.stage.rotation.stream.synchronize()
            return [self.stage.output(self.candidate, result) for result in results]


class GpuBuffers:
    """The GPU with the buffers of one shape; made in the process that uses it."""

    def __init__(self, x: Matrix, protocol: Protocol, out_dtype: Element = FLOAT32) -> None:
        self.gpu, self.protocol = gpu(), protocol
        self.out_dtype = out_dtype
        pair_bytes = x.nbytes + x.size * out_dtype.bytes
        count = protocol.pairs(pair_bytes // 2, device_info().l2_bytes)
        with self.active("filling the buffers"):
            self.rotation = Rotation(self.gpu, x, count, out_dtype)
        self.judge = GpuJudge(self.gpu, self.rotation.stream)

    @property
    def remark(self) -> str:
        """Return a warning where the buffers are too small for what the protocol promises."""
        l2_bytes = device_info().l2_bytes
        if self.protocol.l2 is L2.COLD and self.rotation.nbytes < L2_MULTIPLE * l2_bytes:
            return f"not cold: {self.rotation.nbytes >> 10} KiB of buffers stay in the L2"
        return ""

    @contextmanager
    def active(self, culprit: str) -> Iterator[None]:
        """Make the context current and blame its errors on the culprit."""
        with self.gpu.active(), self.gpu.blaming(culprit):
            yield

    def output(self, candidate: Candidate, result: object) -> Matrix | DeviceOutput:
        """Return what a candidate left on the GPU: here, or if it is large there."""
        if candidate.kind is Kind.COPY or candidate.rows * candidate.cols < LARGE:
            return fetch(self.gpu.driver, result, self.out_dtype)
        return DeviceOutput(self.judge, result)

    def run(self, candidate: Candidate, x: Matrix) -> Matrix | DeviceOutput:
        """Return the candidate's output for a matrix, from buffers with guards around them."""
        shape = (x.shape[0], x.shape[1])
        if candidate.source and candidate.plan:
            with self.gpu.active():
                name, binary = candidate.source.filename, self._binary(candidate)
                y = called(name, binary, candidate.plan, x).buffers["y"]
                return self.output(candidate, MatrixBuffer(y, shape, self.out_dtype))
        guard = 4096
        with self.active(candidate.name):
            source, target = (
                MatrixBuffer(Buffer(self.gpu.driver, x.size * of.bytes, guard), shape, of)
                for of in (element_of(x), self.out_dtype)
            )
            source.fill(x)
            result = self.binder(candidate)(source, target)()
            self.rotation.stream.synchronize()
            if damage := target.buffer.damage():
                raise CheckFailed(f"{candidate.name} wrote to {damage} y")
            return self.output(candidate, result)

    def load(self, candidate: Candidate) -> GpuCandidate:
        """Bind a candidate to the buffers and make it ready for samples."""
        with self.active(f"preparing {candidate.name}"):
            return GpuCandidate(self, candidate)

    def binder(self, candidate: Candidate) -> Bind:
        """Return the function that binds the candidate to a pair of buffers."""
        if candidate.peer:
            bind, stream = candidate.peer.load(), self.rotation.stream.handle
            return lambda x, y: bind(x, y, stream)
        return self._kernel_binder(candidate) if candidate.source else self._copy

    def _kernel_binder(self, candidate: Candidate) -> Bind:
        assert candidate.plan
        kernels = Kernels(self.gpu, self._binary(candidate), candidate.plan)
        sizes = {"workspace": candidate.plan.workspace_bytes}
        sizes |= {each.name: each.nbytes for each in candidate.plan.buffers}
        own = {name: Buffer(self.gpu.driver, size, 0) for name, size in sizes.items()}

        def bind(x: MatrixBuffer, y: MatrixBuffer) -> Issue:
            addresses = {"x": x.address, "y": y.address}
            addresses |= {name: buffer.address for name, buffer in own.items()}
            steps = kernels.bind(addresses, self.rotation.stream)

            def issue(owned: dict[str, Buffer] = own) -> object:  # which lives as long as the call
                for step in steps:
                    step.issue()
                return y

            return issue

        return bind

    def _binary(self, candidate: Candidate) -> Binary:
        assert isinstance(candidate.binary, Binary), "a kernel is compiled before it is measured"
        return candidate.binary

    def _copy(self, x: MatrixBuffer, y: MatrixBuffer) -> Issue:
        driver, stream = self.gpu.driver, self.rotation.stream

        def issue() -> object:
            driver.memcpy_dtod_async(y.address, x.address, x.buffer.nbytes, stream)
            return y

        return issue

    def sampler(self, issues: list[Issue]) -> ReplaySampler | LaunchSampler:
        """Return a sampler whose samples take about as long as the protocol says."""
        stream, pairs = self.rotation.stream, len(issues)
        if not self.protocol.graphs:
            calls = self.protocol.calls_per_sample(1, pairs)
            return LaunchSampler(self.gpu, stream, issues, calls, self.protocol.warmup)
        for issue in issues[:1]:  # a library may set itself up in its first call
            issue()
        # So many calls that what a replay costs by itself is a small part of its time.
        probe = ReplaySampler(self.gpu, stream, issues, pairs * max(1, PROBE_CALLS // pairs))
        calls = self.protocol.calls_per_sample(probe.sample().us, pairs)
        if calls == probe.calls:
            return probe
        probe.free()
        return ReplaySampler(self.gpu, stream, issues, calls)
