"""The workers that a distributed sweep runs on, and what each of them is."""

from __future__ import annotations

import pickle
import queue
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from kgen.errors import KgenError, MissingTool, UsageError
from kgen.store.measurement import Provenance
from kgen.sweep.cluster.connect import GPU, connected
from kgen.sweep.cluster.local import local_cluster
from kgen.sweep.cluster.process import Task, TaskLost, run_task, stop_tasks
from kgen.sweep.cluster.tasks import AskWorker, Describe, WorkerFacts, own_facts
from kgen.sweep.measure import How
from kgen.timing.provenance import this_run

ASK_S, REFRESH_S = 60.0, 1.0
# What a client raises when its scheduler is gone; the last one once it has given up connecting.
GONE = (OSError, TimeoutError, RuntimeError)

# What rows of the same sweep must share to be compared: the device's name and the toolchain.
Machine = tuple[str, str]


@dataclass(frozen=True)
class PoolWorker:
    """A worker. One that can only compile has no provenance among its facts."""

    address: str
    name: str
    threads: int
    facts: WorkerFacts

    @property
    def machine(self) -> Machine | None:
        """What it measures on."""
        here = self.facts.provenance
        return (here.device, here.toolchain) if here else None


def answer_of(future: Any, timeout_s: float) -> Any:
    """Return what the task of a future returned.

    Raises the KgenError that it raised, TaskLost when its process was lost, TimeoutError, and
    exceptions of Dask's when its worker was lost.
    """
    outcome = pickle.loads(future.result(timeout=timeout_s))
    if isinstance(outcome, KgenError):
        raise outcome
    return outcome


class WorkerPool:
    """The workers of a cluster, by address, and how to measure on each kind of machine they have.

    `heard` gets every future that is over.
    """

    def __init__(self, client: Any, how: How, describe: Describe = this_run) -> None:
        self.client, self.how, self.describe = client, how, describe
        self.members: dict[str, PoolWorker] = {}
        self.hows: dict[Machine, How] = {}
        self.heard: queue.Queue[Any] = queue.Queue()
        self.identity = uuid.uuid4().hex
        self._asked: dict[str, _Asked] = {}
        self._refreshed = 0.0

    def gather(self) -> None:
        """Ask all workers what they are.

        Raises UsageError when there is none to measure with, or one is of another kgen;
        MissingTool when one has not the device that it should have.
        """
        self._ask_new()
        for address in list(self._asked):
            self._join(self._asked.pop(address).answer())
        if not self.hows:
            raise UsageError(_nobody(self.where, len(self.members)))

    @property
    def where(self) -> str:
        """The scheduler's address."""
        return str(self.client.scheduler.address)

    def submit(self, address: str, task: Task, *, measures: bool) -> Any:
        """Have a worker run a task; return the future of its result."""
        future = self.client.submit(
            run_task,
            pickle.dumps(task),
            self.identity,
            workers=[address],
            allow_other_workers=False,
            resources={GPU: 1} if measures and self.how.on == "gpu" else None,
            pure=False,
        )
        future.add_done_callback(self.heard.put)
        return future

    def refresh(self) -> set[str]:
        """Now and then see who came; return the addresses of members that are gone."""
        if time.monotonic() < self._refreshed + REFRESH_S:
            return set()
        self._refreshed = time.monotonic()
        alive = self._alive()
        self._hear_late(alive)
        lost = self.members.keys() - alive
        for address in lost:
            del self.members[address]
        if alive - self.members.keys() - self._asked.keys():
            self._ask_new()
        return lost

    def stop(self, futures: list[Any]) -> None:
        """End what the workers do for this sweep; nobody waits for it any more."""
        with suppress(KgenError, *GONE):
            self.client.cancel(futures, force=True)
            alive = list(self._alive())
            self.client.run(stop_tasks, self.identity, workers=alive, on_error="ignore")

    def _alive(self) -> set[str]:
        try:
            return set(self.client.nthreads())
        except GONE:
            raise MissingTool(
                f"the scheduler {self.where} is gone; start it again, then the same command: what "
                "was measured is kept"
            ) from None

    def _ask_new(self) -> None:
        for address, info in self.client.scheduler_info(n_workers=-1)["workers"].items():
            if address not in self.members and address not in self._asked:
                measures = self.how.on == "cpu" or info["resources"].get(GPU, 0) >= 1
                ask = AskWorker(self.how.on, self.how.provenance.commit, measures, self.describe)
                future = self.submit(address, ask, measures=False)
                self._asked[address] = _Asked(address, info, measures, future)

    def _hear_late(self, alive: set[str]) -> None:
        """Take in who answered; one that cannot be used is a member that nothing suits."""
        for address, asked in list(self._asked.items()):
            if address not in alive:
                del self._asked[address]
            elif asked.future.done():
                del self._asked[address]
                try:
                    self._join(asked.answer())
                except KgenError:
                    self.members[address] = PoolWorker(address, asked.name, 0, WorkerFacts("", ""))

    def _join(self, member: PoolWorker) -> None:
        self.members[member.address] = member
        if (machine := member.machine) and machine not in self.hows:
            self.hows[machine] = replace(self.how, provenance=self.here(member))

    def here(self, member: PoolWorker) -> Provenance:
        """Return the provenance of what a member measures: its own, of this sweep's run."""
        own = member.facts.provenance
        assert own
        first = next((how.provenance for how in self.hows.values()), own)
        return replace(own, run=first.run, measured_at=first.measured_at)


@dataclass(frozen=True)
class _Asked:
    """A worker that was asked what it is."""

    address: str
    info: dict[str, Any]
    measures: bool
    future: Any

    @property
    def name(self) -> str:
        return str(self.info["name"])

    def answer(self) -> PoolWorker:
        """Wait for the answer. Raises KgenError when the worker cannot be used."""
        try:
            facts: WorkerFacts = answer_of(self.future, ASK_S)
        except TaskLost as lost:
            raise UsageError(_cannot(self.name, str(lost))) from None
        except KgenError:
            raise
        except TimeoutError:
            raise MissingTool(f"{self.name} did not tell in {ASK_S:g} s what it is") from None
        except Exception as error:  # what Dask says of a worker that does not know kgen
            raise UsageError(_cannot(self.name, f"{type(error).__name__}: {error}")) from None
        own = own_facts()
        if (facts.kgen, facts.templates) != (own.kgen, own.templates):
            raise UsageError(
                f"{self.name} has kgen {facts.kgen} with templates {facts.templates}, and this is "
                f"kgen {own.kgen} with templates {own.templates}; install the same on all workers"
            )
        if self.measures and not facts.provenance:
            raise MissingTool(f"{self.name}: {facts.reason}")
        return PoolWorker(self.address, self.name, self.info["nthreads"], facts)


def _cannot(name: str, problem: str) -> str:
    version = own_facts().kgen
    return (
        f"{name} cannot run tasks of kgen ({problem}); install kgen {version} where the scheduler "
        "and the workers run"
    )


def _nobody(where: str, others: int) -> str:
    start = f"start one for each GPU: dask worker {where} --nthreads 2 --resources GPU=1"
    if others:
        return f"no worker of {where} has the resource GPU; {start}"
    return f"{where} has no workers; {start}"


@contextmanager
def open_pool(
    how: How,
    scheduler: str | None = None,
    local_workers: int | None = None,
    describe: Describe = this_run,
) -> Iterator[WorkerPool]:
    """Give the workers of the scheduler at an address, or else of so many on this machine.

    Of the provenance in `how` only the commit counts; `describe` tells each worker's own.
    Raises what `connected`, `local_cluster` and `WorkerPool.gather` do.
    """
    if scheduler:
        with connected(scheduler) as client:
            yield _gathered(client, how, describe)
    else:
        with local_cluster(local_workers or 1, how.on) as address, connected(address) as client:
            yield _gathered(client, how, describe)


def _gathered(client: Any, how: How, describe: Describe) -> WorkerPool:
    pool = WorkerPool(client, how, describe)
    pool.gather()
    return pool
