"""The cache of compiled executables: one file a key, whole or absent, verified when read."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path

from kgen.cachedir import writing_cache
from kgen.errors import MissingTool

_DIGEST_BYTES = hashlib.sha256().digest_size
_KEY_LETTERS = 32


def content_key(*parts: str | bytes) -> str:
    """Return a short name for these parts, told apart from any other sequence of parts."""
    digest = hashlib.sha256()
    for part in parts:
        # Paths may be no text.
        data = part.encode(errors="surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:_KEY_LETTERS]


def cached_file(path: Path, build: Callable[[Path], None]) -> Path:
    """Return `path`, calling `build(temporary)` first when it is missing or damaged.

    The SHA-256 of the content is kept as the file's last 32 bytes, which linkers and loaders of
    ELF files ignore: one rename publishes both, so any number of processes may build the same file
    at once, and a truncated one is found and rebuilt. What `build` raises is passed on and leaves
    nothing behind. Raises MissingTool when the folder cannot be written, for lack of space too,
    and when nothing was built.
    """
    if not _is_intact(path):
        with writing_cache(path.parent), _scratch_folder(path.parent) as folder:
            temporary = Path(folder, path.name)
            build(temporary)
            if not temporary.is_file():
                raise MissingTool(
                    f"the C++ compiler had nothing to say and wrote no {path.name}: "
                    "set CXX to g++ or clang++"
                )
            digest = hashlib.sha256(temporary.read_bytes()).digest()
            with temporary.open("ab") as file:
                file.write(digest)
            temporary.replace(path)
    return path


def _scratch_folder(parent: Path) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(dir=parent, prefix=".building.")


def _is_intact(path: Path) -> bool:
    try:
        data = path.read_bytes()
    except OSError:
        return False
    content, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    return hashlib.sha256(content).digest() == digest
