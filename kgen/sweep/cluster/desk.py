"""Hands tasks out to the workers of a crew, again where a worker is lost, and passes results on.

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

from kgen.errors import Hindered, KgenError, MissingTool
from kgen.sweep.cluster.crew import Crew, Member, result_of
from kgen.sweep.cluster.process import TaskLost
from kgen.sweep.cluster.tasks import Compile, Measure

# A task whose worker or process is lost so many times is not tried again.
TRIES = 3
POLL_S, RESULT_S = 0.5, 60.0
# So long may a task wait for a worker that can do it, while there is none.
PATIENCE_S = 60.0


@dataclass(eq=False)
class Errand:
    """A task, `what` it is in words, whom it suits, and who is told of its result or its loss."""

    task: Compile | Measure
    what: str
    suits: Callable[[Member], bool]
    then: Callable[[Any], None]
    give_up: Callable[[str], None]
    losses: int = 0
    alone_since: float | None = None

    @property
    def measures(self) -> bool:
        """Whether it needs a device for itself."""
        return isinstance(self.task, Measure)


class Desk:
    """The errands of a sweep that wait, and those under way by their futures."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self.waiting: deque[Errand] = deque()
        self.under_way: dict[Any, tuple[Errand, Member]] = {}

    def work(self) -> None:
        """Have all errands done, also those that are added meanwhile.

        Raises the KgenError that concerns all tasks of a kind, and MissingTool when the scheduler
        is gone or nobody is left, and nobody comes, who could do an errand.
        """
        while self.waiting or self.under_way:
            self._hand_out()
            with suppress(queue.Empty):
                self._conclude(self.crew.heard.get(timeout=POLL_S))
            for address in self.crew.refresh():
                self._miss(address)

    def stop(self) -> None:
        """End what is under way."""
        self.crew.stop(list(self.under_way))
        self.under_way.clear()

    def _hand_out(self) -> None:
        for errand in list(self.waiting):
            able = [member for member in self.crew.members.values() if errand.suits(member)]
            self._note_if_alone(errand, bool(able))
            if free := next((member for member in able if self._is_free(member, errand)), None):
                self.waiting.remove(errand)
                task = errand.task
                if isinstance(task, Measure):
                    task = task.at(self.crew.here(free))
                future = self.crew.submit(free.address, task, measures=errand.measures)
                self.under_way[future] = errand, free

    def _note_if_alone(self, errand: Errand, has_able: bool) -> None:
        now = time.monotonic()
        errand.alone_since = None if has_able else errand.alone_since or now
        if errand.alone_since and now > errand.alone_since + PATIENCE_S:
            raise MissingTool(
                f"no worker is left that can {errand.what}; start one, then the same command "
                "again: what was measured is kept"
            )

    def _is_free(self, member: Member, errand: Errand) -> bool:
        theirs = [one for one, whose in self.under_way.values() if whose is member]
        return len(theirs) < member.threads and all(
            one.measures != errand.measures for one in theirs
        )

    def _conclude(self, future: Any) -> None:
        if not (found := self.under_way.pop(future, None)):
            return
        errand, member = found
        try:
            result = result_of(future, RESULT_S)
        except (TaskLost, Hindered) as lost:
            self._try_again(errand, f"{member.name}: {lost}")
        except KgenError as error:
            raise type(error)(f"{member.name}: {error}") from None
        except Exception as error:  # Dask's own: the worker or the result is lost
            self._try_again(errand, f"{member.name}: {type(error).__name__}: {error}")
        else:
            errand.then(result)

    def _miss(self, address: str) -> None:
        """Take back what a worker had that is gone."""
        for future, (errand, member) in list(self.under_way.items()):
            if member.address == address:
                del self.under_way[future]
                future.cancel(force=True)
                self._try_again(errand, f"the worker {member.name} was lost")

    def _try_again(self, errand: Errand, reason: str) -> None:
        errand.losses += 1
        if errand.losses < TRIES:
            self.waiting.appendleft(errand)
        else:
            errand.give_up(f"given up after {TRIES} tries: {reason}")
