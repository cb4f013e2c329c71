"""What hinders a run: the machine's fault (memory, space, a signal), and not a source's."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from signal import SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGXCPU, SIGXFSZ, Signals

from kgen.errors import MachineTrouble

# What others send; by other signals a program ends itself.
_SENT = (SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGXCPU, SIGXFSZ)
# GCC's words, nvcc's of the programs that it starts, and those of who loads a program.
_OF_THE_MACHINE = re.compile(
    r"No space left on device|Disk quota exceeded|File too large|when writing output to"
    r"|[Cc]annot allocate memory|memory exhausted|out of memory allocating"
    r"|Resource temporarily unavailable|Too many open files|[Cc]annot fork"
    r"|error while loading shared libraries: .*(failed to map|cannot allocate|Error 24|Error 12)"
    r"|(Killed|Terminated|Interrupt|Hangup|limit exceeded) signal terminated program"
    rf"|died due to signal ({'|'.join(map(str, map(int, _SENT)))})\b"
)
_MEMORY = "free memory, or raise the limit (ulimit -v)"
_FILES = "raise the limit of open files (ulimit -n)"
_PROCESSES = "end other processes, or raise the limits (ulimit -u, -v)"
_SPACE = "free space there, or raise the limit (ulimit -f)"
_ADVICE = {
    errno.ENOMEM: _MEMORY,
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.EAGAIN: _PROCESSES,
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: _SPACE,
}


def require_no_trouble(program: str, exit_code: int, messages: str) -> None:
    """Raise MachineTrouble when a program that failed lacked memory or space, or was killed."""
    if -exit_code in _SENT:
        raise killed(program, -exit_code)
    for line in messages.splitlines():
        if _OF_THE_MACHINE.search(line):
            raise _unfinished(program, line.strip())


def killed(program: str, signal: int) -> MachineTrouble:
    """Return what to raise for a program that somebody sent a signal: the system, for memory."""
    return _unfinished(program, Signals(signal).name)


def is_sent(exit_code: int) -> bool:
    """Whether a process ended by a signal that others send."""
    return -exit_code in _SENT


def _unfinished(program: str, why: str) -> MachineTrouble:
    return MachineTrouble(
        f"{program} could not finish ({why}): free memory, and space in TMPDIR and "
        "KGEN_CACHE_DIR, then try again"
    )


def trouble_of(error: BaseException) -> str:
    """Return what an error says that this machine lacks, and what to do; empty for other errors."""
    if isinstance(error, MemoryError):
        return f"{str(error).rstrip('.') or 'out of memory'}: {_MEMORY}"
    if isinstance(error, OSError) and error.errno in _ADVICE:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}: {_ADVICE[error.errno]}"
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return f"no further thread can be started: {_PROCESSES}"
    return ""


@contextmanager
def telling_trouble(what: str = "") -> Iterator[None]:
    """Turn errors of Python's for what this machine lacks into MachineTrouble, `what` in front."""
    try:
        yield
    except (MemoryError, OSError, RuntimeError) as error:
        if not (lack := trouble_of(error)):
            raise
        raise MachineTrouble(f"{what}: {lack}" if what else lack) from None
