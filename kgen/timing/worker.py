"""A process that works through items one by one, and is replaced when one of them ends it.

An illegal address ends the CUDA context of the process it happens in, and a kernel that hangs ends
only with its process. So kernels run in a worker, and the next one runs all the same.
"""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Generic, Self, TypeVar

from kgen.errors import CheckFailed, KgenError

# What a process gets for its own end: CUDA's, and that of libraries with processes of their own.
CLOSE_S = 3.0
Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkerLost(CheckFailed):
    """The worker died, failed unexpectedly, or was stopped because it took too long."""


class Worker(Generic[Item, Result]):
    """Applies `function` to items in a process of its own, started when the first item comes.

    Function, items and results must be picklable: the function one of a module, or a
    functools.partial of one. As a context manager the worker stops its process at the end.
    """

    def __init__(self, function: Callable[[Item], Result]) -> None:
        self._function = function
        self._running: tuple[BaseProcess, Connection] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def apply(self, item: Item, timeout_s: float) -> Result:
        """Return `function(item)`, or raise the KgenError that it raised.

        Raises WorkerLost when there is no answer within `timeout_s` seconds (the process's start
        included), when the process dies, and for any other exception, whose traceback the worker
        prints. After a WorkerLost the next item gets a new process.
        """
        try:
            outcome = self._ask(item, timeout_s)
            if isinstance(outcome, KgenError):
                raise outcome
            return outcome
        except WorkerLost:
            self.discard()
            raise

    def _ask(self, item: Item, timeout_s: float) -> Result | KgenError:
        process, connection = self._running = self._running or _start(self._function)
        try:
            connection.send(item)
            if not connection.poll(timeout_s):
                raise WorkerLost(f"it gave no result within {timeout_s:g} s and was stopped")
            outcome: Result | KgenError = connection.recv()
        except (EOFError, ConnectionError):
            process.join()
            raise WorkerLost(f"the process it ran in {_ending(process)}") from None
        return outcome

    def close(self) -> None:
        """Let the process end by itself, so that it can clean up; stop it if it does not."""
        if self._running:
            process, connection = self._running
            connection.close()
            process.join(CLOSE_S)
            self.discard()

    def discard(self) -> None:
        """Stop the process at once, if there is one; the next item starts another."""
        if self._running:
            process, connection = self._running
            process.kill()
            process.join()
            connection.close()
            self._running = None


def _start(function: Callable[[Item], Result]) -> tuple[BaseProcess, Connection]:
    # Spawned, as the CUDA driver does not work in the fork of a process that has initialised it.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, function), daemon=True)
    process.start()
    theirs.close()  # the worker alone has that end, so its death is seen at ours
    return process, ours


def _serve(connection: Connection, function: Callable[[Item], Result]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then stops us
    while True:
        try:
            connection.send(_attempt(function, connection.recv()))
        except (EOFError, ConnectionError):  # nobody waits for results any more
            return


def _attempt(function: Callable[[Item], Result], item: Item) -> Result | KgenError:
    try:
        return function(item)
    except KgenError as error:
        return error
    except Exception as error:
        traceback.print_exc()
        return WorkerLost(f"it ended in an unexpected {type(error).__name__}: {error}")


def _ending(process: BaseProcess) -> str:
    code = process.exitcode or 0
    if code < 0:
        return f"died of {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
