"""Runs a compiled kernel in a process of its own: a crash or an endless loop ends only that."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from kgen.errors import MissingTool

# How long the process may take to say what it was running when its time is up.
_LAST_WORDS_S = 5.0


# The exit code of a process whose machine lacks memory for the run (runtime/report.h).
_NO_MEMORY = 5


@dataclass(frozen=True)
class Outcome:
    """How a process ended: its exit code (negative: the signal) and what it said on stderr."""

    exit_code: int
    messages: str
    timed_out: bool


def execute(executable: Path, job: str, descriptor: int, timeout_s: float) -> Outcome:
    """Run `executable` with `job` on its standard input, for at most `timeout_s` seconds.

    The process inherits the file `descriptor`, and standard output for kernels that print. At its
    time limit it first gets SIGTERM, for which it reports what is running. Raises MissingTool when
    this machine lacks the memory for it.
    """
    with _start(executable, descriptor) as process:
        try:
            _, messages = process.communicate(job, timeout_s)
            if process.returncode == _NO_MEMORY:
                raise MissingTool(
                    f"{messages.strip()}: free memory, or raise the limit (ulimit -v)"
                )
            return Outcome(process.returncode, messages, False)
        except subprocess.TimeoutExpired:
            messages = _end(process)
            return Outcome(process.returncode, messages, True)
        finally:
            process.kill()  # nothing to do in the cases above; on Ctrl-C there is


def _start(executable: Path, descriptor: int) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            [executable],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(descriptor,),
            encoding="utf-8",
            errors="replace",
        )
    except PermissionError:
        raise MissingTool(
            f"{executable} may not be run from where it is: set KGEN_CACHE_DIR to a folder on a "
            "file system that programs can be run from"
        ) from None


def _end(process: subprocess.Popen[str]) -> str:
    process.terminate()
    try:
        return process.communicate(timeout=_LAST_WORDS_S)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[1]
