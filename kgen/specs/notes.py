"""What a learner should know of each version: what it is, why, and the mistake usually made."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Note:
    """What the version is in a few words, `why` it exists, and the usual `mistake` there.

    `header` is what the file's header adds; `changes` says why axes change against the parent, by
    axis, where there are several.
    """

    what: str
    why: str
    mistake: str
    header: str = ""
    changes: Mapping[str, str] = field(default_factory=dict)


@functools.cache
def notes() -> dict[str, Note]:
    """Return the notes of all versions by name."""
    table = tomllib.loads((Path(__file__).parent / "notes.toml").read_text(encoding="utf-8"))
    return {name: Note(**entry) for name, entry in table.items()}


def header_note(version: str) -> str:
    """Return what the generated file's header adds for this version, or nothing."""
    return notes()[version].header if version in notes() else ""
