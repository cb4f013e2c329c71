"""Blocks that a file says nothing of, found by trying them on the CPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from msgspec import structs

from kgen.adopted.check import right_on
from kgen.adopted.guess import Guess
from kgen.adopted.sidecar import Sidecar
from kgen.adopted.source import adopted_source
from kgen.adopted.usual import UNKNOWN, UNSAID
from kgen.errors import KgenError

BLOCKS = (256, 128, 512, 1024, 64, 32)


def settled(path: Path, guessed: Guess) -> Guess:
    """Return a guess with the block that is right most often, where the file says nothing of it.

    Where none works, or nothing runs on this machine, it stays what it was.
    """
    place = "kernel[0].block"
    is_open = guessed.remarks.get(place, "").endswith((UNSAID, UNKNOWN))
    if len(guessed.sidecar.kernel) > 1 or not is_open:
        return guessed
    right = {block: _right(path, _with_block(guessed.sidecar, block)) for block in BLOCKS}
    good = [block for block in BLOCKS if right[block] == max(right.values()) > 0]
    if not good:
        return guessed
    said = f"tried on the CPU: right with {' and '.join(map(str, sorted(good)))}" + (
        " only" if len(good) == 1 else ""
    )
    best = _with_block(guessed.sidecar, good[0])
    return replace(guessed, sidecar=best, remarks={**guessed.remarks, place: said})


def _with_block(sidecar: Sidecar, block: int) -> Sidecar:
    return structs.replace(sidecar, kernel=[structs.replace(sidecar.kernel[0], block=block)])


def _right(path: Path, sidecar: Sidecar) -> int:
    try:
        return right_on(adopted_source(path, sidecar))
    except KgenError:
        return 0
