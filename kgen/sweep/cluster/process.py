"""How a worker of a cluster runs a task: in a process of its own, which ends with the worker.

`python -m kgen.sweep.cluster.process` is that process. It reads a pickled task from stdin and calls
it; what the task returns, or the KgenError that it raises, goes pickled to what was stdout. The
task's own output, and its children's, goes to stderr.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from kgen.cachedir import temporary_dir
from kgen.errors import KgenError

Task = Callable[[], Any]
# The processes of tasks in this worker, each with the run that it belongs to.
_running: dict[subprocess.Popen[bytes], str] = {}


class TaskLost(KgenError):
    """The process of a task died or failed unexpectedly; another try may succeed."""


def run_task(pickled: bytes, run: str) -> bytes:
    """Return, pickled, what a pickled task returned or the KgenError that it raised.

    The task is called in a process of its own; `run` is for `stop_tasks`. Raises TaskLost when
    there is no result.
    """
    command = [sys.executable, "-m", __name__]
    with tempfile.TemporaryFile(dir=temporary_dir()) as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            start_new_session=True,
        )
        _running[process] = run
        try:
            answer = _converse(process, pickled)
            if process.wait() or not answer:
                raise TaskLost(f"the task's process {_ending(process.returncode, output)}")
            return answer
        finally:
            del _running[process]
            _kill(process)


def stop_tasks(run: str) -> None:
    """Kill the processes of this worker's tasks of a run."""
    for process, theirs in list(_running.items()):
        if theirs == run:
            _kill(process)


def _converse(process: subprocess.Popen[bytes], pickled: bytes) -> bytes:
    assert process.stdin and process.stdout
    # A process that is dying does not take all of it. Stdin stays open: its end is the worker's.
    with suppress(BrokenPipeError):
        process.stdin.write(pickled)
        process.stdin.flush()
    return process.stdout.read()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its children, as far as they are still there."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _ending(code: int, output: IO[bytes]) -> str:
    if code < 0:
        return f"died of {signal.Signals(-code).name}"
    output.seek(0)
    lines = output.read().decode(errors="replace").strip().splitlines()
    return f"ended with exit code {code}" + (f": {lines[-1]}" if lines else "")


def main() -> None:
    """Be the process of a task."""
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)
        task: Task = pickle.load(sys.stdin.buffer)
        threading.Thread(target=_end_with_worker, daemon=True).start()
        try:
            outcome = task()
        except KgenError as error:
            outcome = error
        pickle.dump(outcome, answer)


def _end_with_worker() -> None:
    """Kill this process and its children as soon as nobody can want their result any more."""
    os.read(0, 1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
