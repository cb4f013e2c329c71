"""Compilers that could not do their work: what is the machine's fault, and not a source's."""

from __future__ import annotations

import re
from signal import SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGXCPU, SIGXFSZ, Signals

from kgen.errors import MissingTool

# What others send; by other signals a program ends itself.
_SENT = (SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGXCPU, SIGXFSZ)
# GCC's words, and nvcc's of the programs that it starts.
_OF_THE_MACHINE = re.compile(
    r"No space left on device|Disk quota exceeded|File too large|when writing output to"
    r"|[Cc]annot allocate memory|memory exhausted|out of memory allocating"
    r"|(Killed|Terminated|Interrupt|Hangup|limit exceeded) signal terminated program"
    rf"|died due to signal ({'|'.join(map(str, map(int, _SENT)))})\b"
)


def require_unhindered(compiler: str, exit_code: int, messages: str) -> None:
    """Raise MissingTool when a compiler that failed lacked memory or space, or was killed."""
    if -exit_code in _SENT:
        raise _hindered(compiler, Signals(-exit_code).name)
    for line in messages.splitlines():
        if _OF_THE_MACHINE.search(line):
            raise _hindered(compiler, line.strip())


def _hindered(compiler: str, why: str) -> MissingTool:
    return MissingTool(
        f"{compiler} could not finish ({why}): free memory, and space in TMPDIR and "
        "KGEN_CACHE_DIR, then try again"
    )
