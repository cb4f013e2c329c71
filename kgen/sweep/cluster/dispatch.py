"""Hands tasks out to the workers of a pool, again where a worker is lost, and passes results on.

A worker has one task that measures and one that compiles at a time, if it has the threads: what
each of them is at is then always known, and a lost worker costs no more than that.
"""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kgen.errors import KgenError, MachineTrouble, MissingTool
from kgen.sweep.cluster.process import TaskLost
from kgen.sweep.cluster.tasks import Compile, Measure
from kgen.sweep.cluster.workers import PoolWorker, WorkerPool, answer_of

# A task whose worker or process is lost so many times is not tried again.
TRIES = 3
POLL_S, RESULT_S = 0.5, 60.0
# So long may a task wait for a worker that can do it, while there is none.
PATIENCE_S = 60.0


@dataclass(eq=False)
class QueuedTask:
    """A task, `what` it is in words, whom it suits, and who is told of its result or its loss."""

    task: Compile | Measure
    what: str
    suits: Callable[[PoolWorker], bool]
    then: Callable[[Any], None]
    give_up: Callable[[str], None]
    losses: int = 0
    alone_since: float | None = None

    @property
    def measures(self) -> bool:
        """Whether it needs a device for itself."""
        return isinstance(self.task, Measure)


class Dispatcher:
    """The queued tasks of a sweep that wait, and those under way by their futures."""

    def __init__(self, pool: WorkerPool) -> None:
        self.pool = pool
        self.waiting: deque[QueuedTask] = deque()
        self.under_way: dict[Any, tuple[QueuedTask, PoolWorker]] = {}

    def work(self) -> None:
        """Have all queued tasks done, also those that are added meanwhile.

        Raises the KgenError that concerns all tasks of a kind, and MissingTool when the scheduler
        is gone or nobody is left, and nobody comes, who could do an queued.
        """
        while self.waiting or self.under_way:
            self._hand_out()
            with suppress(queue.Empty):
                self._conclude(self.pool.heard.get(timeout=POLL_S))
            for address in self.pool.refresh():
                self._miss(address)

    def stop(self) -> None:
        """End what is under way."""
        self.pool.stop(list(self.under_way))
        self.under_way.clear()

    def _hand_out(self) -> None:
        for queued in list(self.waiting):
            able = [member for member in self.pool.members.values() if queued.suits(member)]
            self._note_if_alone(queued, bool(able))
            if free := next((member for member in able if self._is_free(member, queued)), None):
                self.waiting.remove(queued)
                task = queued.task
                if isinstance(task, Measure):
                    task = task.at(self.pool.here(free))
                future = self.pool.submit(free.address, task, measures=queued.measures)
                self.under_way[future] = queued, free

    def _note_if_alone(self, queued: QueuedTask, has_able: bool) -> None:
        now = time.monotonic()
        queued.alone_since = None if has_able else queued.alone_since or now
        if queued.alone_since and now > queued.alone_since + PATIENCE_S:
            raise MissingTool(
                f"no worker is left that can {queued.what}; start one, then the same command "
                "again: what was measured is kept"
            )

    def _is_free(self, member: PoolWorker, queued: QueuedTask) -> bool:
        theirs = [one for one, whose in self.under_way.values() if whose is member]
        return len(theirs) < member.threads and all(
            one.measures != queued.measures for one in theirs
        )

    def _conclude(self, future: Any) -> None:
        if not (found := self.under_way.pop(future, None)):
            return
        queued, member = found
        try:
            result = answer_of(future, RESULT_S)
        except (TaskLost, MachineTrouble) as lost:
            self._try_again(queued, f"{member.name}: {lost}")
        except KgenError as error:
            raise type(error)(f"{member.name}: {error}") from None
        except Exception as error:  # Dask's own: the worker or the result is lost
            self._try_again(queued, f"{member.name}: {type(error).__name__}: {error}")
        else:
            queued.then(result)

    def _miss(self, address: str) -> None:
        """Take back what a worker had that is gone."""
        for future, (queued, member) in list(self.under_way.items()):
            if member.address == address:
                del self.under_way[future]
                future.cancel(force=True)
                self._try_again(queued, f"the worker {member.name} was lost")

    def _try_again(self, queued: QueuedTask, reason: str) -> None:
        queued.losses += 1
        if queued.losses < TRIES:
            self.waiting.appendleft(queued)
        else:
            queued.give_up(f"given up after {TRIES} tries: {reason}")
