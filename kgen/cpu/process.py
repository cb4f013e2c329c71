"""Runs a compiled kernel in a process of its own: a crash or an endless loop ends only that."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

# How long the process may take to say what it was running when its time is up.
_LAST_WORDS_S = 5.0


@dataclass(frozen=True)
class Outcome:
    """How a process ended: exit code (negative: the signal), what it printed, and why."""

    exit_code: int
    output: str
    errors: str
    timed_out: bool


def execute(executable: Path, job: str, descriptor: int, timeout_s: float) -> Outcome:
    """Run `executable` with `job` on its standard input, for at most `timeout_s` seconds.

    The process inherits the file `descriptor`. At its time limit it first gets SIGTERM, for which
    it reports what is running.
    """
    with subprocess.Popen(
        [executable],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(descriptor,),
        text=True,
    ) as process:
        try:
            output, errors = process.communicate(job, timeout_s)
            return Outcome(process.returncode, output, errors, False)
        except subprocess.TimeoutExpired:
            output, errors = _end(process)
            return Outcome(process.returncode, output, errors, True)
        finally:
            process.kill()  # nothing to do in the cases above; on Ctrl-C there is


def _end(process: subprocess.Popen[str]) -> tuple[str, str]:
    process.terminate()
    try:
        return process.communicate(timeout=_LAST_WORDS_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()
