"""Whether a matrix fits into this machine's memory, asked before the system ends who tries."""

from __future__ import annotations

import os

from kgen.errors import MissingTool

# What is held at once, as measured: of every element the matrix, what kernels read and write, what
# comes back and the reference; of every row its sums; and the row that is being judged.
_ELEMENT_BYTES, _ROW_BYTES, _JUDGED_BYTES = 24, 32, 24


def needed_bytes(rows: int, cols: int) -> int:
    """Return about how many bytes verifying a kernel on a rows x cols matrix takes."""
    return _ELEMENT_BYTES * rows * cols + _ROW_BYTES * rows + _JUDGED_BYTES * cols


def machine_bytes() -> int:
    """Return how many bytes of memory this machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def require_memory(rows: int, cols: int) -> None:
    """Raise MissingTool when this machine has less memory than a rows x cols matrix takes."""
    needed, there = needed_bytes(rows, cols), machine_bytes()
    if needed > there:
        raise MissingTool(
            f"{rows} x {cols} takes about {needed / 1e9:,.0f} GB of memory, and this machine has "
            f"{there / 1e9:,.0f} GB; choose fewer rows or cols"
        )
