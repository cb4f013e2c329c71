"""Runs the jobs of a sweep on the workers of a Dask cluster.

Any worker with the right nvcc compiles. A shape's candidates are screened in chunks, each on one
GPU; the finalists of all chunks are then measured on one GPU, with copies, from the start. Each
kind of machine does all of this for itself. Here is decided who stays, and all rows are recorded.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from kgen.errors import MachineTrouble
from kgen.specs.formula import ceil_div
from kgen.store.measurement import Measurement, Outcome
from kgen.sweep.cluster.dispatch import Dispatcher, QueuedTask
from kgen.sweep.cluster.tasks import Compile, Measure, Measured
from kgen.sweep.cluster.workers import Machine, WorkerPool
from kgen.sweep.halving import Search
from kgen.sweep.jobs import Job
from kgen.sweep.measure import How, prune_job
from kgen.sweep.shape import CHUNK, Watcher
from kgen.timing.bench import Record
from kgen.timing.candidates import Candidate, with_binaries
from kgen.timing.summary import blank
from kgen.toolchain.batch import Result

# So many tasks a worker leave none idle for long at the end.
TASKS_A_WORKER = 4
# Starting the process of a task takes as long as measuring a few candidates.
LEAST_CHUNK = {"gpu": 32, "cpu": 8}
LEAST_COMPILED, MOST_COMPILED = 32, 256

Item = TypeVar("Item")


def run_distributed(
    pool: WorkerPool, jobs: Sequence[Sequence[Job]], record: Record, watcher: Watcher
) -> None:
    """Compile, prune, verify and measure all candidates, recording a row of each.

    `jobs` has those of each machine of `pool.hows`, in their order. Tasks whose worker is lost run
    again; those that are lost too often get rows that say so. Raises what `Dispatcher.work` does,
    and KeyboardInterrupt, after recording what was measured.
    """
    dispatcher = Dispatcher(pool)
    sweeps = [
        _Sweep(machine, how, theirs, dispatcher, record, watcher)
        for (machine, how), theirs in zip(pool.hows.items(), jobs, strict=True)
    ]
    try:
        for sweep in sweeps:
            sweep.begin()
        dispatcher.work()
    finally:
        dispatcher.stop()
        for sweep in sweeps:
            sweep.leave()


class _Sweep:
    """The jobs of a machine: those that wait for binaries, and the shapes being measured."""

    def __init__(
        self,
        machine: Machine,
        how: How,
        jobs: Sequence[Job],
        dispatcher: Dispatcher,
        record: Record,
        watcher: Watcher,
    ) -> None:
        self.machine, self.how, self.dispatcher = machine, how, dispatcher
        self.record, self.watcher = record, watcher
        self.binaries: dict[str, Result] = {}
        self.waiting = [job for job in jobs if job.candidates]
        self.shapes: list[_Shape] = []
        self.nvcc = "" if how.search is Search.MODEL else self._choose_nvcc()

    def _choose_nvcc(self) -> str:
        """Return the nvcc of who measures, or else anybody's; '' where nobody has one."""
        members = list(self.dispatcher.pool.members.values())
        members.sort(key=lambda member: member.machine != self.machine)
        return next((member.facts.nvcc for member in members if member.facts.nvcc), "")

    def begin(self) -> None:
        """Have the sources compiled, in the order of the shapes that need them."""
        sources = {
            one.source.text: one.source
            for job in self.waiting
            for one in job.candidates
            if self.nvcc and one.source and one.is_kernel
        }
        compilers = sum(
            one.facts.nvcc == self.nvcc for one in self.dispatcher.pool.members.values()
        )
        for texts in chunks(list(sources), LEAST_COMPILED, MOST_COMPILED, compilers):
            chosen = tuple(sources[text] for text in texts)
            queued = QueuedTask(
                Compile(chosen, self.how.arch, self.how.protocol.options),
                what=f"compile with nvcc {self.nvcc}",
                suits=lambda member: member.facts.nvcc == self.nvcc,
                then=functools.partial(self._compiled, texts),
                give_up=functools.partial(self._not_compiled, texts),
            )
            self.dispatcher.waiting.append(queued)
        self._measure_compiled()

    def _compiled(self, texts: Sequence[str], results: Sequence[Result]) -> None:
        self.binaries |= zip(texts, results, strict=True)
        self._measure_compiled()

    def _not_compiled(self, texts: Sequence[str], reason: str) -> None:
        self._compiled(texts, [MachineTrouble(reason)] * len(texts))

    def _measure_compiled(self) -> None:
        """Begin with the jobs that have all of their binaries."""
        for job in list(self.waiting):
            if self.nvcc and not all(map(self._is_compiled, job.candidates)):
                continue
            self.waiting.remove(job)
            job.candidates = with_binaries(job.candidates, self.binaries)
            prune_job(job, self.how, self.record, self.watcher)
            self.shapes.append(_Shape(self, job))
            self.shapes[-1].begin()

    def _is_compiled(self, one: Candidate) -> bool:
        return not (one.source and one.is_kernel) or one.source.text in self.binaries

    def count_measurers(self) -> int:
        """Return how many workers measure these jobs."""
        return sum(
            member.machine == self.machine for member in self.dispatcher.pool.members.values()
        )

    def finish(self, row: Measurement) -> None:
        """Record a final row."""
        self.record.finish(row)
        self.watcher.finished(row)

    def leave(self) -> None:
        """Record what is known of candidates whose measurement was cut short."""
        for shape in self.shapes:
            shape.leave()


class _Shape:
    """A job on its way; `held` are the screening's rows of candidates that will get better ones."""

    def __init__(self, sweep: _Sweep, job: Job) -> None:
        self.sweep, self.how, self.job = sweep, sweep.how, job
        self.held: dict[str, Measurement] = {}
        self.under_way = 0

    def begin(self) -> None:
        """Have the candidates measured, or screened first where there are many."""
        parts = self._parts()
        screens = self.how.on == "gpu" and len(parts) > 1
        for part in parts:
            self._measure(part, screens)

    def _parts(self) -> list[Sequence[Candidate]]:
        """Cut the job where that gives the same rows: on the CPU, and where finals follow."""
        candidates, on = self.job.candidates, self.how.on
        uncut = {"cpu": (Search.MODEL,), "gpu": (Search.MODEL, Search.FULL)}
        if self.how.search in uncut[on]:
            return [candidates] if self.how.count(self.job) else []
        return chunks(candidates, LEAST_CHUNK[on], CHUNK, self.sweep.count_measurers())

    def _measure(self, candidates: Sequence[Candidate], screens: bool) -> None:
        self.under_way += 1
        known = self.job.done if self.how.search is Search.MODEL else []
        job = replace(self.job, candidates=list(candidates), done=known, earlier={})
        queued = QueuedTask(
            Measure(job, self.how, screens),
            what=f"measure on {' with '.join(self.sweep.machine)}",
            suits=lambda member: member.machine == self.sweep.machine,
            then=self._hear,
            give_up=functools.partial(self._give_up, candidates),
        )
        self.sweep.dispatcher.waiting.append(queued)

    def _hear(self, measured: Measured) -> None:
        for row in measured.rows:
            self.held.pop(row.variant, None)
            if row.variant in measured.finalists:
                self.held[row.variant] = row
            else:
                self.sweep.finish(row)
        self._go_on()

    def _give_up(self, candidates: Sequence[Candidate], reason: str) -> None:
        for one in candidates:
            if row := self.held.pop(one.name, None):
                row = replace(row, remark=reason)
            else:
                row = blank(one, self.how.protocol, self.how.provenance)
                row = replace(row, outcome=Outcome.MACHINE_TROUBLE, reason=reason)
            self.sweep.finish(replace(row, is_complete=False))
        self._go_on()

    def _go_on(self) -> None:
        """Once all chunks are screened, measure the finalists together."""
        self.under_way -= 1
        if self.under_way or not self.held:
            return
        samples = {name: row.samples_us for name, row in self.held.items()}
        stay = set(self.how.halving.survivors(samples))
        for name in self.held.keys() - stay:
            self.sweep.finish(self.held.pop(name))
        self._measure([one for one in self.job.candidates if one.name in stay], screens=False)

    def leave(self) -> None:
        """Record the finalists that were only screened."""
        for row in self.held.values():
            self.sweep.finish(replace(row, is_complete=False))
        self.held.clear()


def chunks(items: Sequence[Item], least: int, most: int, workers: int) -> list[Sequence[Item]]:
    """Cut items into parts of about the same size, a few for each worker, none of them too large.

    They are neighbours, since what was compiled together is sent together.
    """
    wanted = ceil_div(len(items), TASKS_A_WORKER * max(1, workers))
    parts = ceil_div(len(items), min(most, max(least, wanted)))
    size = ceil_div(len(items), max(1, parts))
    return [items[start : start + size] for start in range(0, len(items), max(1, size))]
