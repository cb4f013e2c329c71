"""How a worker of a cluster runs a task: in a process of its own, which ends with the worker.

`main` is that process. It reads a pickled task from stdin and calls it; what the task returns, or
the KgenError that it raises, goes pickled to what was stdout. The task's own output, and its
children's, goes to stderr.
"""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from signal import Signals
from subprocess import PIPE, Popen
from typing import IO, Any

from kgen.cachedir import temporary_dir
from kgen.errors import KgenError
from kgen.machine_trouble import telling_trouble
from kgen.processes import end, python, running

Task = Callable[[], Any]
# The processes of tasks in this worker, each with the run that it belongs to.
_running: dict[Popen[bytes], str] = {}


class TaskLost(KgenError):
    """The process of a task died or failed unexpectedly; another try may succeed."""


def run_task(pickled: bytes, run: str) -> bytes:
    """Return, pickled, what a pickled task returned or the KgenError that it raised.

    The task is called in a process of its own; `run` is for `stop_tasks`. Raises TaskLost when
    there is no result.
    """
    with (
        tempfile.TemporaryFile(dir=temporary_dir()) as output,
        running(python(__name__), stdin=PIPE, stdout=PIPE, stderr=output) as process,
    ):
        _running[process] = run
        try:
            answer, _ = process.communicate(pickled)
        finally:
            del _running[process]
        if process.returncode or not answer:
            raise TaskLost(f"the task's process {_ending(process.returncode, output)}")
        return bytes(answer)


def stop_tasks(run: str) -> None:
    """End the processes of this worker's tasks of a run."""
    for process, theirs in list(_running.items()):
        if theirs == run:
            end(process)


def _ending(code: int, output: IO[bytes]) -> str:
    if code < 0:
        return f"died of {Signals(-code).name}"
    output.seek(0)
    lines = output.read().decode(errors="replace").strip().splitlines()
    return f"ended with exit code {code}" + (f": {lines[-1]}" if lines else "")


def main() -> None:
    """Be the process of a task."""
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)
        task: Task = pickle.load(sys.stdin.buffer)
        try:
            with telling_trouble():
                outcome = task()
        except KgenError as error:
            outcome = error
        pickle.dump(outcome, answer)
