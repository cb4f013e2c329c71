"""What a learner should know of each version: why it is as it is, and the mistake usually made."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Note:
    """`why` the version exists, the usual `mistake` there, and what the file's header adds."""

    why: str
    mistake: str
    header: str = ""


@functools.cache
def notes() -> dict[str, Note]:
    """Return the notes of all versions by name."""
    table = tomllib.loads((Path(__file__).parent / "notes.toml").read_text(encoding="utf-8"))
    return {name: Note(**entry) for name, entry in table.items()}


def header_note(version: str) -> str:
    """Return what the generated file's header adds for this version, or nothing."""
    return notes()[version].header if version in notes() else ""
