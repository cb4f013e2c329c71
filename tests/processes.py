"""What tests of ended processes need: programs that do not end, and who is left of them."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path

from kgen.reaper import marked

LIMIT_S = 30.0
# Has a child in a session of its own, as daemons are.
HANGING = "setsid sleep 600 > /dev/null 2>&1 & echo > started; sleep 600"


def traced() -> tuple[str, dict[str, str]]:
    """Return a mark and an environment with it, by which all that is started is found."""
    mark = f"KGEN_TEST_{uuid.uuid4().hex}"
    return mark, {**os.environ, mark: "1"}


def await_file(path: Path) -> None:
    """Wait until there is a file."""
    deadline = time.monotonic() + LIMIT_S
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} was not made"
        time.sleep(0.01)


def are_gone(mark: str) -> bool:
    """Tell whether all processes with a mark have ended, or do so soon."""
    deadline = time.monotonic() + 5
    while marked(mark):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
