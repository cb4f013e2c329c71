"""Stands for GPUs of a cluster: right outputs, fixed times, and accidents of the process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import kgen.timing.candidates
from kgen.errors import CompileFailed
from kgen.evidence.inputs import Matrix
from kgen.evidence.reference import reference64
from kgen.gpu.rotation import Sample
from kgen.numpy_types import numpy_dtype
from kgen.specs.choice import Element
from kgen.store.measurement import Kind, Provenance
from kgen.timing.candidates import Candidate
from kgen.timing.measurer import TimedCandidate
from kgen.timing.protocol import Protocol
from kgen.toolchain import Binary, CompileOptions, KernelResources
from kgen.toolchain.source import PlainSource


class FakeGpu:
    """What `open_device` of a sweep may be. In a task's process it brings a stand-in for nvcc.

    `accident` happens when the candidate `victim` is verified: `task` kills the task's process,
    `worker` the one of Dask's worker, `hang` hangs. It happens once, and leaves the process id of
    the task in a file of `folder`, or `always`.
    """

    def __init__(
        self, folder: Path, accident: str = "", victim: str = "", always: bool = False
    ) -> None:
        self.folder, self.accident, self.victim, self.always = folder, accident, victim, always

    def __call__(self, x: Matrix, protocol: Protocol, out_dtype: Element) -> FakeDevice:
        return FakeDevice(self, x)

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        kgen.timing.candidates.compile_many = compile_fakes  # type: ignore[assignment]

    def visit(self, name: str) -> None:
        """Have the accident if it is time for it."""
        if name != self.victim:
            return
        try:
            with (self.folder / "accident").open("a" if self.always else "x") as file:
                print(os.getppid(), file=file)
        except FileExistsError:
            return
        if self.accident == "hang":
            time.sleep(600)
        task = os.getppid()
        os.kill(parent_of(task) if self.accident == "worker" else task, signal.SIGKILL)
        time.sleep(600)


class FakeDevice:
    """The device of one shape."""

    def __init__(self, gpu: FakeGpu, x: Matrix) -> None:
        self.gpu, self.x = gpu, x

    def run(self, candidate: Candidate, x: Matrix) -> Matrix:
        self.gpu.visit(candidate.name)
        assert x.dtype == numpy_dtype(candidate.types.dtype)
        return output(candidate, x)

    def load(self, candidate: Candidate) -> TimedCandidate:
        return FakeTimed(candidate, self.x)


class FakeTimed:
    """A candidate whose time is a microsecond for each of its threads."""

    calls, remark, package = 4, "", ""

    def __init__(self, candidate: Candidate, x: Matrix) -> None:
        self.candidate, self.x, self.taken = candidate, x, 0

    def sample(self) -> Sample:
        self.taken += 1
        launch = self.candidate.plan.launches[0] if self.candidate.plan else None
        us = float(launch.block) if launch and self.candidate.kind is not Kind.COPY else 1.0
        return Sample(us * (1 + 0.001 * (self.taken % 3)), 0.25)

    def outputs(self) -> list[Matrix]:
        return [output(self.candidate, self.x)]

    def free(self) -> None:
        """Own nothing."""


def output(candidate: Candidate, x: Matrix) -> Matrix:
    """Return what a right candidate makes of `x`."""
    right = x if candidate.kind is Kind.COPY else reference64(x)
    return right.astype(numpy_dtype(candidate.types.out_dtype))


def compile_fakes(
    sources: Sequence[PlainSource], arch: str, options: CompileOptions
) -> list[Binary | CompileFailed]:
    """Stand for nvcc."""
    return [
        Binary(Path("fake.cubin"), b"", arch, tuple(map(_resources, source.kernels)), "")
        for source in sources
    ]


def _resources(kernel: str) -> KernelResources:
    return KernelResources(kernel, 32, 0, 0, 0, 0)


def parent_of(process: int) -> int:
    """Return the process that started another."""
    status = Path(f"/proc/{process}/stat").read_text()
    return int(status.rpartition(")")[2].split()[1])


def is_gone(process: int) -> bool:
    """Tell whether a process has ended, or does so soon."""
    deadline = time.monotonic() + 10
    while Path(f"/proc/{process}").exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def one_model(on: str, commit: str) -> Provenance:
    """Describe a GPU of which all workers have one."""
    return _describe("a fake", commit)


def two_models(on: str, commit: str) -> Provenance:
    """Describe a GPU of another model on each worker."""
    return _describe(f"fake {os.environ['CUDA_VISIBLE_DEVICES']}", commit)


def _describe(device: str, commit: str) -> Provenance:
    number = os.environ["CUDA_VISIBLE_DEVICES"]
    return Provenance(
        run=f"of {number}",
        measured_at=f"2026-01-0{1 + int(number)}T00:00:00+00:00",
        device=device,
        device_uuid=f"GPU-{number}",
        arch="sm_90",
        toolchain="a fake",
        commit=commit,
    )
