"""Runs the jobs of a sweep in this process: compiled together, then shape by shape."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from kgen.errors import MissingTool
from kgen.store.measurement import Measurement, Provenance
from kgen.sweep.guided import TryOut, explore
from kgen.sweep.halving import Halving, Search
from kgen.sweep.jobs import Job
from kgen.sweep.model import model_us
from kgen.sweep.model_gpu import REFERENCE_GPU
from kgen.sweep.pruning import prune
from kgen.sweep.rows import contenders, cost_us
from kgen.sweep.shape import ShapeSearch, Watcher
from kgen.timing.bench import Bench, Record
from kgen.timing.candidates import Candidate, compiled, copies
from kgen.timing.measurer import MakeDevice, open_gpu_buffers
from kgen.timing.on_cpu import measure_on_cpu
from kgen.timing.protocol import Protocol
from kgen.toolchain import Binary


@dataclass(frozen=True, kw_only=True)
class How:
    """How a sweep measures: where, by which protocol, how it searches, and what it prunes."""

    on: str
    protocol: Protocol
    provenance: Provenance
    search: Search = Search.HALVING
    halving: Halving = field(default_factory=Halving)
    keep_all: bool = False
    prepare_s: float = 120.0
    trials: int = 100
    open_device: MakeDevice = open_gpu_buffers

    @property
    def arch(self) -> str:
        """The architecture to compile for: the GPU's, or on the CPU that of the cost model."""
        return self.provenance.arch if self.on == "gpu" else REFERENCE_GPU.arch

    def count(self, job: Job) -> int:
        """Return how many candidates of a job will be tried; all, unless a sampler chooses."""
        if self.search is not Search.MODEL:
            return len(job.candidates)
        return min(len(job.candidates), max(0, self.trials - len(job.done)))


def run_jobs(jobs: Sequence[Job], how: How, record: Record, watcher: Watcher) -> None:
    """Compile, prune, verify and measure all candidates of the jobs, recording a row of each.

    Raises MissingTool when there is nothing to measure with, and KeyboardInterrupt after recording
    what was measured.
    """
    if how.search is not Search.MODEL:
        compile_jobs(jobs, how)
    for job in jobs:
        if how.search is not Search.MODEL:
            prune_job(job, how, record, watcher)
        run_job(job, how, record, watcher)


def compile_jobs(jobs: Sequence[Job], how: How) -> None:
    """Compile the candidates of all jobs together; on the CPU that may be left undone."""
    everything = [candidate for job in jobs for candidate in job.candidates]
    try:
        done = iter(compiled(everything, how.arch, how.protocol.options))
    except MissingTool:
        if how.on == "gpu":
            raise
        return
    for job in jobs:
        job.candidates = list(itertools.islice(done, len(job.candidates)))


def prune_job(job: Job, how: How, record: Record, watcher: Watcher) -> None:
    """Leave out of a job what need not be timed, recording a row of it."""
    if how.keep_all:
        return
    job.candidates, pruned = prune(job.candidates, how.protocol, how.provenance)
    for row in pruned:
        record.finish(row)
        watcher.finished(row)


def run_job(job: Job, how: How, record: Record, watcher: Watcher) -> None:
    """Verify and measure the candidates of one shape: compiled ones, unless a model chooses."""
    if not how.count(job):
        return
    if how.search is Search.MODEL:
        _run_guided(job, how, record, watcher)
    elif how.on == "cpu":
        model_on_cpu(job, how, record, watcher)
    else:
        with _search(job, _yardsticks(job, how), how, record, watcher) as search:
            search.run(how.search, how.halving)


def _run_guided(job: Job, how: How, record: Record, watcher: Watcher) -> None:
    """Measure what a sampler chooses."""

    def explore_with(try_out: TryOut) -> None:
        def compile_first(chosen: Sequence[Candidate]) -> Mapping[str, float]:
            part = _alone(job, chosen)
            compile_jobs([part], how)
            prune_job(part, how, record, watcher)
            return try_out(part.candidates)

        explore(job.candidates, how.count(job), how.protocol.seed, compile_first, job.done)

    def model(chosen: Sequence[Candidate]) -> Mapping[str, float]:
        rows = model_on_cpu(_alone(job, chosen), how, record, watcher)
        return {row.variant: cost_us(row) for row in contenders(rows)}

    if how.on == "cpu":
        explore_with(model)
        return
    none_yet = replace(job, candidates=[])
    with _search(none_yet, _yardsticks(job, how), how, record, watcher) as search:
        search.run_guided(explore_with, how.halving)


def _alone(job: Job, chosen: Sequence[Candidate]) -> Job:
    """Return a job of some of its candidates, of which nothing is known."""
    return replace(job, candidates=list(chosen), done=[], earlier={})


def _yardsticks(job: Job, how: How) -> list[Candidate]:
    return compiled(copies(job.rows, job.cols, job.types), how.arch, how.protocol.options)


def screen_job(job: Job, how: How, record: Record, watcher: Watcher) -> list[str]:
    """Verify candidates of one shape, time them until the finalists are known; return these.

    All of them have a row then, of the few rounds that they had.
    """
    with _search(job, (), how, record, watcher) as search:
        return search.screen(how.halving)


@contextmanager
def _search(
    job: Job, yardsticks: Sequence[Candidate], how: How, record: Record, watcher: Watcher
) -> Iterator[ShapeSearch]:
    bench = Bench(
        job.rows,
        job.cols,
        how.protocol,
        how.provenance,
        types=job.types,
        prepare_s=how.prepare_s,
        open_device=how.open_device,
    )
    try:
        yield ShapeSearch(bench, [*job.candidates, *yardsticks], record, watcher, job.earlier)
    finally:
        bench.close()


def model_on_cpu(job: Job, how: How, record: Record, watcher: Watcher) -> list[Measurement]:
    """Verify and count the candidates of one shape on the CPU, and model their cost."""
    by_name = {candidate.name: candidate for candidate in job.candidates}
    rows: list[Measurement] = []

    def keep(row: Measurement) -> None:
        row = _with_model(row, by_name[row.variant])
        rows.append(row)
        record.finish(row)
        watcher.finished(row)

    measure_on_cpu(job.candidates, how.protocol, how.provenance, timeout_s=how.prepare_s, keep=keep)
    return rows


def _with_model(row: Measurement, candidate: Candidate) -> Measurement:
    if row.global_loads is None or candidate.plan is None:
        return row
    kernels = candidate.binary.kernels if isinstance(candidate.binary, Binary) else None
    return replace(row, model_us=model_us(row, candidate.plan, kernels))
