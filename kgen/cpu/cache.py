"""The cache of compiled executables: one file a key, whole or absent, verified when read."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kgen.errors import MissingTool

_DIGEST_BYTES = hashlib.sha256().digest_size
_KEY_LETTERS = 32


def content_key(*texts: str) -> str:
    """Return a short name for these texts, told apart from any other sequence of texts."""
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode(errors="surrogatepass")  # of paths that are no text
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:_KEY_LETTERS]


def cached_file(path: Path, build: Callable[[Path], None]) -> Path:
    """Return `path`, calling `build(temporary)` first when it is missing or damaged.

    The SHA-256 of the content is kept as the file's last 32 bytes, which linkers and loaders of
    ELF files ignore: one rename publishes both, so any number of processes may build the same file
    at once, and a truncated one is found and rebuilt. What `build` raises is passed on and leaves
    nothing behind. Raises MissingTool when the folder cannot be written, for lack of space too.
    """
    if not _is_intact(path):
        with _writing(path.parent), _scratch_folder(path.parent) as folder:
            temporary = Path(folder) / path.name
            build(temporary)
            digest = hashlib.sha256(temporary.read_bytes()).digest()
            with temporary.open("ab") as file:
                file.write(digest)
            temporary.replace(path)
    return path


def _scratch_folder(parent: Path) -> tempfile.TemporaryDirectory[str]:
    parent.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(dir=parent, prefix=".building.")


@contextmanager
def _writing(parent: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:  # what says that it built a file did not
        raise
    except OSError as error:
        raise MissingTool(
            f"the cache folder {parent} cannot be written ({error.strerror}): "
            "set KGEN_CACHE_DIR to one that can"
        ) from None


def _is_intact(path: Path) -> bool:
    try:
        data = path.read_bytes()
    except OSError:
        return False
    content, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    return hashlib.sha256(content).digest() == digest
