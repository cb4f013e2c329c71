"""The tasks of a distributed sweep; what they hold and return is pickled on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kgen.errors import MissingTool
from kgen.overlay import OURS, Overlay
from kgen.sources.render import template_hash
from kgen.store.measurement import Measurement, Provenance
from kgen.sweep.jobs import Job
from kgen.sweep.measure import How, run_job, screen_job
from kgen.timing.provenance import this_run
from kgen.toolchain import CompileOptions, compile_many, find_nvcc
from kgen.toolchain.batch import Result
from kgen.toolchain.source import Compilable
from kgen.version import __version__

# Tells where kernels would run, given the place ("gpu" or "cpu") and the commit of kgen.
Describe = Callable[[str, str], Provenance]


@dataclass(frozen=True)
class WorkerFacts:
    """A worker's kgen and nvcc ('' without one), and its device, or the reason why it has none."""

    kgen: str
    templates: str
    nvcc: str = ""
    provenance: Provenance | None = None
    reason: str = ""


def own_facts(overlay: Overlay = OURS) -> WorkerFacts:
    """Return what must be the same on all workers."""
    return WorkerFacts(__version__, template_hash(overlay))


@dataclass(frozen=True)
class AskWorker:
    """Finds out what a worker is; its device only if it `measures`."""

    on: str
    commit: str
    measures: bool
    describe: Describe = this_run
    overlay: Overlay = OURS

    def __call__(self) -> WorkerFacts:
        """Return the facts."""
        facts = replace(own_facts(self.overlay), nvcc=_nvcc())
        if not self.measures:
            return facts
        try:
            return replace(facts, provenance=self.describe(self.on, self.commit))
        except MissingTool as missing:
            return replace(facts, reason=str(missing))


def _nvcc() -> str:
    try:
        return find_nvcc().version
    except MissingTool:
        return ""


@dataclass(frozen=True)
class Compile:
    """Compiles sources together."""

    sources: tuple[Compilable, ...]
    arch: str
    options: CompileOptions

    def __call__(self) -> list[Result]:
        """Return the binaries in the order of the sources."""
        return compile_many(self.sources, self.arch, self.options)


class Kept:
    """A record and a watcher that keeps the final rows."""

    def __init__(self) -> None:
        self.rows: list[Measurement] = []

    def finish(self, row: Measurement) -> None:
        """Keep the row."""
        self.rows.append(row)

    def prepared(self, *heard: object, **named: object) -> None:
        """Do nothing: who is killed starts again."""

    begin = add_round = sampled = finished = prepared


@dataclass(frozen=True)
class Measured:
    """The rows that a task made, and the names of the candidates that are worth more time."""

    rows: list[Measurement]
    finalists: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measure:
    """Verifies and measures candidates of one shape; with `screens`, only to drop the slower."""

    job: Job
    how: How
    screens: bool = False

    def at(self, provenance: Provenance) -> Measure:
        """Return the task as a worker with this provenance runs it."""
        return replace(self, how=replace(self.how, provenance=provenance))

    def __call__(self) -> Measured:
        """Return what came out."""
        kept = Kept()
        if self.screens:
            finalists = screen_job(self.job, self.how, kept, kept)
            return Measured(kept.rows, tuple(finalists))
        run_job(self.job, self.how, kept, kept)
        return Measured(kept.rows)
