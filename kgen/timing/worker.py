"""A process that works through items one by one, and is replaced when one of them ends it.

An illegal address ends the CUDA context of the process it happens in, and a kernel that hangs ends
only with its process. So kernels run in a worker, and the next one runs all the same.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from signal import Signals
from subprocess import Popen, TimeoutExpired
from typing import Generic, Self, TypeVar

from kgen.errors import CheckFailed, KgenError, MachineTrouble
from kgen.machine_trouble import is_sent, killed, telling_trouble
from kgen.processes import end, python, start

# What a process gets for its own end: CUDA's, and that of libraries with processes of their own.
CLOSE_S = 3.0
Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkerLost(CheckFailed):
    """The worker died, failed unexpectedly, or was stopped because it took too long."""


class Worker(Generic[Item, Result]):
    """Applies `function` to items in a process of its own, started when the first item comes.

    Function, items and results must be picklable: the function one of a module that can be
    imported, or a functools.partial of one. As a context manager the worker stops its process at
    the end.
    """

    def __init__(self, function: Callable[[Item], Result]) -> None:
        self._function = function
        self._running: tuple[Popen[bytes], Connection] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def apply(self, item: Item, timeout_s: float) -> Result:
        """Return `function(item)`, or raise the KgenError that it raised.

        Raises WorkerLost when there is no answer within `timeout_s` seconds (the process's start
        included), when the process dies, and for any other exception, whose traceback the worker
        prints; MachineTrouble when somebody killed it, or the machine lacks memory or the like.
        After these the next item gets a new process.
        """
        try:
            outcome = self._ask(item, timeout_s)
            if isinstance(outcome, KgenError):
                raise outcome
            return outcome
        except (WorkerLost, MachineTrouble):
            self.discard()
            raise

    def _ask(self, item: Item, timeout_s: float) -> Result | KgenError:
        is_new = not self._running
        process, connection = self._running = self._running or _start()
        try:
            if is_new:
                connection.send(self._function)
            connection.send(item)
            if not connection.poll(timeout_s):
                raise WorkerLost(f"it gave no result within {timeout_s:g} s and was stopped")
            outcome: Result | KgenError = connection.recv()
        except (EOFError, ConnectionError):
            raise _loss(process.wait()) from None
        return outcome

    def close(self) -> None:
        """Let the process end by itself, so that it can clean up; stop it if it does not."""
        if self._running:
            process, connection = self._running
            connection.close()
            with suppress(TimeoutExpired):
                process.wait(CLOSE_S)
            self.discard()

    def discard(self) -> None:
        """Stop the process at once, if there is one; the next item starts another."""
        if self._running:
            process, connection = self._running
            end(process)
            connection.close()
            self._running = None


def _start() -> tuple[Popen[bytes], Connection]:
    # Not forked, as the CUDA driver does not work in the fork of a process that has initialised it.
    ours, theirs = Pipe()
    with theirs:  # the worker alone has that end then, so its death is seen at ours
        descriptor = theirs.fileno()
        return start(python(__name__, descriptor), pass_fds=(descriptor,)), ours


def main() -> None:
    """Be the worker: apply the first thing that comes to all others, until nobody waits."""
    connection = Connection(int(sys.argv[1]))
    with suppress(EOFError, ConnectionError):
        function = connection.recv()
        while True:
            connection.send(_attempt(function, connection.recv()))


def _attempt(function: Callable[[Item], Result], item: Item) -> Result | KgenError:
    try:
        with telling_trouble():
            return function(item)
    except KgenError as error:
        return error
    except Exception as error:
        traceback.print_exc()
        return WorkerLost(f"it ended in an unexpected {type(error).__name__}: {error}")


def _loss(code: int) -> WorkerLost | MachineTrouble:
    """Return what to raise for a worker that ended by itself."""
    if is_sent(code):
        return killed("the process it ran in", -code)
    how = f"died of {Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return WorkerLost(f"the process it ran in {how}")
