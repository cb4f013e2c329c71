"""Ends all that a process has started, as soon as that process is gone, however it ended.

`python reaper.py MARK` reads its standard input, whose other end that process has and nobody else;
then it kills every process with the variable MARK in its environment. Whatever such a process
starts inherits the mark, and keeps it whoever becomes its parent. (Linux's /proc shows it.)
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

PAUSE_S = 0.01
# A process that is just being started does not show its environment yet.
QUIET_LOOKS = 2
# One that waits for a device cannot be killed, and nobody waits for it for ever.
PATIENCE_S = 10.0


def marked(mark: str) -> list[int]:
    """Return the ids of the processes that have the mark."""
    folders = (folder for folder in Path("/proc").glob("[1-9]*") if _has(folder, mark))
    return [int(folder.name) for folder in folders]


def _has(folder: Path, mark: str) -> bool:
    try:
        return f"\0{mark}=".encode() in b"\0" + (folder / "environ").read_bytes()
    except OSError:  # the process has ended meanwhile, or is another user's
        return False


def main(mark: str) -> None:
    """Wait for the end of the process, then kill what it has started."""
    os.read(0, 1)
    quiet, deadline = 0, time.monotonic() + PATIENCE_S
    while quiet < QUIET_LOOKS and time.monotonic() < deadline:
        found = marked(mark)
        for process in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        quiet = 0 if found else quiet + 1
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main(sys.argv[1])
