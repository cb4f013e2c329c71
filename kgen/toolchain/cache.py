"""The cache of compiled binaries: one folder a key, written atomically, verified when read.

The key covers all that goes into a compilation except the headers, which are known only
afterwards; an entry therefore lists those it was compiled with, and holds while they are the same.
Sources that were compiled together share one cubin, which lies outside of their folders.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kgen.files import replace_file
from kgen.toolchain.binary import Binary, KernelResources


def digest(texts: Iterable[str], data: bytes = b"") -> str:
    """Return the SHA-256 of a sequence of texts, told apart from any other sequence, and data."""
    return hashlib.sha256(json.dumps(list(texts)).encode() + data).hexdigest()


def digest_of_files(paths: Iterable[str]) -> str:
    """Return one SHA-256 of the files' contents in the given order; raises OSError."""
    contents = (hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in paths)
    return digest(contents)


def digest_of_headers(paths: Iterable[str]) -> str:
    """Return their digest, or one that none has when one of them is there no more."""
    try:
        return digest_of_files(paths)
    except OSError:
        return ""


@dataclass(frozen=True)
class Entry:
    """The place of one compilation in the cache: `folder` belongs to `key` alone.

    The folder holds `entry.json`, which names the cubin; that of a source that was compiled by
    itself is `<stem>.cubin` beside `<stem>.cu`. Any number of processes may read and write it at
    once: each file is replaced as a whole, and a mixture fails the digest.
    """

    folder: Path
    key: str
    stem: str

    @property
    def cubin(self) -> Path:
        """The path of the cubin of a source that is compiled by itself."""
        return self.folder / f"{self.stem}.cubin"

    def load(
        self, arch: str, digest_files: Callable[[tuple[str, ...]], str] = digest_of_files
    ) -> Binary | None:
        """Return the binary, or None if it is absent, damaged, foreign or older than a header.

        Who loads many entries may give a `digest_of_files` that remembers: all of them were
        compiled with the same dozens of headers.
        """
        try:
            record = json.loads((self.folder / "entry.json").read_text(encoding="utf-8"))
            content = record["content"]
            path = Path(os.path.normpath(self.folder / content["cubin"]))
            image = path.read_bytes()
            if record["digest"] != self._digest(content, image):
                return None
            if content["headers_digest"] != digest_files(tuple(content["headers"])):
                return None
        except (OSError, ValueError, LookupError, TypeError):
            return None
        kernels = tuple(KernelResources(**kernel) for kernel in content["kernels"])
        return Binary(path, _one_object(image), arch, kernels, content["log"])

    def store(self, binary: Binary, headers: list[str], headers_digest: str) -> None:
        """Record a binary, whose cubin lies at its path, and the headers it was compiled with.

        Raises OSError.
        """
        content = {
            "cubin": os.path.relpath(binary.path, self.folder),
            "kernels": [asdict(kernel) for kernel in binary.kernels],
            "log": binary.log,
            "headers": headers,
            "headers_digest": headers_digest,
        }
        record = {"digest": self._digest(content, binary.image), "content": content}
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self.folder / "entry.json", json.dumps(record))

    def _digest(self, content: dict[str, Any], image: bytes) -> str:
        return digest([self.key, json.dumps(content, sort_keys=True)], image)


@functools.lru_cache(maxsize=16)
def _one_object(image: bytes) -> bytes:
    """Return the same object for equal images, so that a shared cubin is in memory once."""
    return image
