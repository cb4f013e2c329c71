"""Runs a compiled kernel in a process of its own: a crash or an endless loop ends only that."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM
from subprocess import PIPE, Popen, TimeoutExpired

from kgen.errors import MachineTrouble, MissingTool
from kgen.machine_trouble import killed, require_no_trouble
from kgen.processes import running

# How long the process may take to say what it was running when its time is up.
_LAST_WORDS_S = 5.0
# Exit codes of the executable (runtime/report.h): the machine lacks memory or a thread for the run;
# it got SIGTERM. And that of the system's loader, of what it could not load.
_LACKING, _TERMINATED, _NOT_LOADED = 5, 6, 127


@dataclass(frozen=True)
class ProcessEnd:
    """How a process ended: its exit code (negative: the signal) and what it said on stderr."""

    exit_code: int
    messages: str
    timed_out: bool


def execute(executable: Path, job: str, descriptor: int, timeout_s: float) -> ProcessEnd:
    """Run `executable` with `job` on its standard input, for at most `timeout_s` seconds.

    The process inherits the file `descriptor`, and standard output for kernels that print. At its
    time limit it first gets SIGTERM, for which it reports what is running. Raises
    MachineTrouble when this machine lacks what it takes, or it was killed; MissingTool when it may
    not be run.
    """
    how = {"pass_fds": (descriptor,), "encoding": "utf-8", "errors": "replace"}
    try:
        with running([executable], stdin=PIPE, stderr=PIPE, **how) as process:
            outcome = _outcome(process, job, timeout_s)
    except PermissionError:
        raise MissingTool(
            f"{executable} may not be run from where it is: set KGEN_CACHE_DIR to a folder on a "
            "file system that programs can be run from"
        ) from None
    if not outcome.timed_out:
        _require_no_trouble(executable.name, outcome)
    return outcome


def _outcome(process: Popen[str], job: str, timeout_s: float) -> ProcessEnd:
    try:
        _, messages = process.communicate(job, timeout_s)
        return ProcessEnd(process.returncode, messages, False)
    except TimeoutExpired:
        process.terminate()
    try:
        _, messages = process.communicate(timeout=_LAST_WORDS_S)
    except TimeoutExpired:
        process.kill()
        _, messages = process.communicate()
    return ProcessEnd(process.returncode, messages, True)


def _require_no_trouble(name: str, outcome: ProcessEnd) -> None:
    if outcome.exit_code == _LACKING:
        raise MachineTrouble(
            f"{outcome.messages.strip()}: free memory, or raise the limit (ulimit)"
        )
    if outcome.exit_code == _TERMINATED:
        raise killed(name, SIGTERM)
    words = outcome.messages if outcome.exit_code == _NOT_LOADED else ""
    require_no_trouble(name, outcome.exit_code, words)
