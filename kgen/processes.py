"""Starts every process that kgen starts, and sees to it that none of them outlives kgen.

Each has a session of its own: signals of the terminal are for kgen alone, and what a program has
started is ended with it. When kgen itself ends in whatever way, by SIGKILL too, a reaper
(`reaper.py`, one for this process) ends all that is left. (A parent-death signal would come when
the thread that started a program ends, and not to what nvcc and g++ start.)
"""

from __future__ import annotations

import atexit
import functools
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGKILL, SIGTERM
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from typing import Any

from kgen.errors import MachineTrouble
from kgen.machine_trouble import telling_trouble

Command = Sequence[str | Path]
# What a program gets to clean up before it is killed.
GRACE_S = 1.0
_HOME = str(Path(__file__).parent.parent)
_of_thread = threading.local()


def start(command: Command, *, env: Mapping[str, str] | None = None, **how: Any) -> Popen[Any]:
    """Start a program; `env` is all of its environment, and `how` is as for subprocess.Popen.

    Its standard input is empty unless `how` says otherwise. `end` it. Raises MachineTrouble when
    this machine lacks what a process takes, and OSError for what is no program.
    """
    with telling_trouble(f"{Path(command[0]).name} cannot be started"):
        environment = {**(os.environ if env is None else env), _mark(): "1"}
        how = {"stdin": DEVNULL, **how}
        return Popen(command, env=environment, start_new_session=True, **how)


def end(process: Popen[Any]) -> None:
    """End a process and what it has started, as far as they are there, and wait for it."""
    if process.poll() is None:
        for signal, patience_s in ((SIGTERM, GRACE_S), (SIGKILL, None)):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal)
            with suppress(TimeoutExpired):
                process.wait(patience_s)


@contextmanager
def running(command: Command, **how: Any) -> Iterator[Popen[Any]]:
    """Give a started program, which ends with the block; arguments and errors as for `start`."""
    programs: _Programs = getattr(_of_thread, "programs", None) or _Programs()
    with programs.start(command, **how) as process:
        try:
            yield process
        finally:
            end(process)
            programs.running.discard(process)


def run(
    command: Command, *, timeout_s: float | None = None, **how: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; return its exit code and what it said, as text.

    Raises TimeoutExpired after `timeout_s` seconds, and what `start` does.
    """
    how = {"stdout": PIPE, "stderr": PIPE, "encoding": "utf-8", "errors": "replace", **how}
    with running(command, **how) as process:
        output, messages = process.communicate(timeout=timeout_s)
    return subprocess.CompletedProcess(command, process.returncode, output, messages)


def python(module: str, *arguments: object) -> list[str]:
    """Return the command that calls `main()` of a module in an interpreter of its own.

    It imports from where this one does, and nothing from the folder it is started in.
    """
    path = [*filter(None, sys.path), _HOME]
    code = f"import sys; sys.path[:] = {path!r}; from {module} import main; main()"
    return [sys.executable, "-P", "-c", code, *map(str, arguments)]


@contextmanager
def thread_pool(size: int) -> Iterator[ThreadPoolExecutor]:
    """Give threads for work that runs programs; an exception in the block ends these at once."""
    programs = _Programs()
    pool = ThreadPoolExecutor(size, initializer=lambda: setattr(_of_thread, "programs", programs))
    try:
        yield pool
    except BaseException:
        programs.disband()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


class _Programs:
    """The programs that the threads of a pool run."""

    def __init__(self) -> None:
        self.running: set[Popen[Any]] = set()
        self._is_over = False
        self._lock = threading.Lock()

    def start(self, command: Command, **how: Any) -> Popen[Any]:
        with self._lock:
            if self._is_over:
                raise MachineTrouble(f"{Path(command[0]).name} was not started: kgen is ending")
            process = start(command, **how)
            self.running.add(process)
        return process

    def disband(self) -> None:
        with self._lock:
            self._is_over = True
        for process in list(self.running):
            end(process)


@functools.cache
def _mark() -> str:
    """Return the variable that marks what this process starts, for the reaper, which it starts."""
    mark = f"KGEN_STARTED_BY_{os.getpid()}_{uuid.uuid4().hex}"
    command = [sys.executable, "-I", "-S", Path(__file__).with_name("reaper.py"), mark]
    quiet = {"stdout": DEVNULL, "stderr": DEVNULL}
    reaper = Popen(command, stdin=PIPE, cwd="/", start_new_session=True, **quiet)  # type: ignore[call-overload]
    atexit.register(reaper.communicate)
    return mark
