"""The cache of what compilers make: a file and a record of it, written atomically, verified.

The record (`NAME.json`) names the file, has facts about it, and a digest of all. Any number of
processes may read and write an entry at once: each file is replaced as a whole, and a mixture, a
truncated or a foreign file fails the digest and is made again. So no lock is needed.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kgen.cachedir import writing_cache
from kgen.errors import MissingTool
from kgen.files import replace_file

KEY_LETTERS = 32


def digest(*parts: str | bytes) -> str:
    """Return the SHA-256 of a sequence of parts, told apart from any other sequence of parts."""
    hashed = hashlib.sha256()
    for part in parts:
        # Paths may be no text.
        data = part.encode(errors="surrogatepass") if isinstance(part, str) else part
        hashed.update(len(data).to_bytes(8, "little") + data)
    return hashed.hexdigest()


class Cached(NamedTuple):
    """What an entry has: where the file is, its content, and the facts recorded about it."""

    path: Path
    content: bytes
    facts: dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """The place of what was made for `key`: the record's folder, and the name of both files."""

    folder: Path
    name: str
    key: str

    @property
    def path(self) -> Path:
        """Where the file is, unless several entries share one."""
        return self.folder / self.name

    @property
    def record(self) -> Path:
        """Where the record is."""
        return self.folder / f"{self.name}.json"

    def load(self) -> Cached | None:
        """Return what is there, or None if it is absent, damaged or foreign."""
        try:
            record = json.loads(self.record.read_text(encoding="utf-8"))
            facts = record["facts"]
            path = Path(os.path.normpath(self.folder / record["file"]))
            content = path.read_bytes()
            if record["digest"] != self._digest(record["file"], facts, content):
                return None
        except (OSError, ValueError, LookupError, TypeError):
            return None
        return Cached(path, content, facts)

    def store(self, path: Path, content: bytes, facts: dict[str, Any]) -> None:
        """Record a file, which is at its path already. Raises OSError."""
        name = os.path.relpath(path, self.folder)
        record = {"file": name, "facts": facts, "digest": self._digest(name, facts, content)}
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self.record, json.dumps(record))

    def _digest(self, name: str, facts: dict[str, Any], content: bytes) -> str:
        return digest(self.key, name, json.dumps(facts, sort_keys=True), content)


def made_file(entry: Entry, make: Callable[[Path], None]) -> Path:
    """Return the entry's file, calling `make(temporary)` first when it is missing or damaged.

    What `make` raises is passed on and leaves nothing behind. Raises MissingTool when the folder
    cannot be written, for lack of space too, and when nothing was made.
    """
    if entry.load() is None:
        with writing_cache(entry.folder), _scratch(entry.folder) as folder:
            temporary = Path(folder, entry.name)
            make(temporary)
            if not temporary.is_file():
                raise MissingTool(
                    f"the C++ compiler had nothing to say and wrote no {entry.name}: "
                    "set CXX to g++ or clang++"
                )
            content = temporary.read_bytes()
            temporary.replace(entry.path)
            entry.store(entry.path, content, {})
    return entry.path


def _scratch(parent: Path) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(dir=parent, prefix=".building.")
