"""Stands for the GPU of a benchmark, in its worker too: candidates do there what their names say.

`crash` crashes when it is verified, `crash@3` when its third sample is taken, and so on.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from kgen.errors import CompileFailed, KernelFault, MissingTool, UsageError
from kgen.evidence.inputs import Matrix
from kgen.evidence.reference import Criterion, reference64
from kgen.gpu.rotation import Sample
from kgen.launch import Launch, LaunchPlan
from kgen.numpy_types import numpy_dtype
from kgen.specs.choice import Element
from kgen.store.measurement import Kind, Measurement, Provenance
from kgen.timing.candidates import Candidate
from kgen.timing.peers import Peer
from kgen.timing.protocol import Protocol
from kgen.toolchain import Binary, CompileOptions, KernelResources
from kgen.toolchain.source import PlainSource

ROWS, COLS = 8, 100
CALLS = 4
ROUNDS = 6
SIX_ROUNDS = Protocol(min_rounds=ROUNDS, max_rounds=ROUNDS)
PROVENANCE = Provenance(
    run="a run", measured_at="2026-01-02T03:04:05+00:00", device="a fake", arch="sm_90"
)
MICROSECONDS = {"fast": 1.0, "slow": 3.0, "copy": 0.5, "v5": 2.0, "v6": 2.2}
LOST: list[str] = []  # what ended this process's CUDA context


def act(action: str) -> None:
    """Do what goes wrong."""
    if LOST:
        raise KernelFault(f"the context is lost since {LOST}")
    match action:
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "hang":
            time.sleep(600)
        case "interrupt":
            os.kill(os.getppid(), signal.SIGINT)
            time.sleep(600)
        case "fault":
            LOST.append(action)
            raise KernelFault("fault failed on the GPU: an illegal memory access")
        case "too_big":
            raise UsageError("too_big needs 300000 bytes of shared memory")
        case "absent":
            raise MissingTool("no module named absent")


class FakeDevice:
    """Right outputs and fixed times, but for candidates whose names say otherwise."""

    def __init__(self, x: Matrix, protocol: Protocol, out_dtype: Element) -> None:
        self.x = x

    def run(self, candidate: Candidate, x: Matrix) -> Matrix:
        act(candidate.name)
        return output(candidate, x, candidate.name.removeprefix("rows_"))

    def load(self, candidate: Candidate) -> FakeTimed:
        return FakeTimed(candidate, self.x)


class FakeTimed:
    """A candidate whose samples are its own time, up to 0.2% more."""

    calls = CALLS
    package = ""

    def __init__(self, candidate: Candidate, x: Matrix) -> None:
        self.candidate, self.x, self.taken = candidate, x, 0
        self.remark = "not cold" if candidate.name == "lukewarm" else ""

    def sample(self) -> Sample:
        if "wrong" in self.candidate.name:
            os._exit(9)  # wrong results must not get here
        self.taken += 1
        action, _, number = self.candidate.name.partition("@")
        if number and self.taken == int(number):
            act(action)
        us = MICROSECONDS.get(self.candidate.name.partition(":")[0], 2.0)
        return Sample(us * (1 + 0.001 * (self.taken % 3)), 0.25)

    def outputs(self) -> list[Matrix]:
        right = output(self.candidate, self.x, "")
        return [right, output(self.candidate, self.x, self.candidate.name.removeprefix("timed_"))]

    def free(self) -> None:
        """Own nothing."""


def output(candidate: Candidate, x: Matrix, action: str) -> Matrix:
    """Return what the candidate makes of `x`."""
    right = x if candidate.kind is Kind.COPY else reference64(x)
    y = right.astype(numpy_dtype(candidate.types.out_dtype))
    if action in ("wrong", "copy_wrong", "odd"):
        y[2, 3] += 1
    elif action == "unwritten_wrong":
        y[5, 6] = np.nan
    return y


def without_gpu(x: Matrix, protocol: Protocol, out_dtype: Element) -> FakeDevice:
    """Stand for a machine without a GPU."""
    raise MissingTool("no GPU found")


def compile_fakes(
    sources: Sequence[PlainSource], arch: str, options: CompileOptions
) -> list[Binary | CompileFailed]:
    """Stand for nvcc, which rejects what is called so."""
    assert arch == PROVENANCE.arch and options == CompileOptions()
    return [
        CompileFailed(f"nvcc rejected {source.filename}") if source.stem == "rejected" else binary
        for source in sources
        for binary in [_binary(source.kernels)]
    ]


def _binary(kernels: Sequence[str]) -> Binary:
    resources = tuple(
        KernelResources(name, 30 + number, 16, 4, 8, 1024) for number, name in enumerate(kernels, 1)
    )
    return Binary(Path("fake.cubin"), b"", PROVENANCE.arch, resources, "")


def variant(name: str, kind: Kind = Kind.VARIANT) -> Candidate:
    """Return a candidate of one kernel with 256 bytes of dynamic shared memory."""
    launch = Launch(name, 1, 32, 256, ("x", "y", "rows", "cols"))
    return Candidate(
        kind=kind,
        name=name,
        rows=ROWS,
        cols=COLS,
        source=PlainSource(name, f"// {name}", (name,)),
        plan=LaunchPlan(ROWS, COLS, (launch,)),
        criterion=Criterion(32),
    )


def peer(name: str) -> Candidate:
    """Return someone else's candidate, which needs no compiler."""
    plug_in = Peer(name, "", Path(f"{name}.py"))
    return Candidate(
        kind=Kind.PEER, name=name, rows=ROWS, cols=COLS, peer=plug_in, criterion=Criterion(64)
    )


class Heard:
    """A record of a run: what it was told, in order."""

    def __init__(self) -> None:
        self.begun: list[Measurement] = []
        self.rounds: list[dict[str, float]] = []
        self.finished: list[Measurement] = []

    def begin(self, row: Measurement, samples_us: Sequence[float] = ()) -> None:
        assert not samples_us
        self.begun.append(row)

    def add_round(self, rows: Mapping[str, Measurement], taken: Mapping[str, float]) -> None:
        assert all(rows[name].variant == name for name in taken)
        self.rounds.append(dict(taken))

    def finish(self, row: Measurement) -> None:
        self.finished.append(row)

    @property
    def names(self) -> list[str]:
        """The names of the finished rows."""
        return [row.variant for row in self.finished]
