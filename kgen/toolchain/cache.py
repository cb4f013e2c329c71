"""The entries of compiled binaries in the cache.

The key covers all that goes into a compilation except the headers, which are known only
afterwards; an entry therefore lists those it was compiled with, and holds while they are the same.
Sources that were compiled together share one cubin, which lies outside of their folders.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from kgen.cache import Entry, digest
from kgen.toolchain.binary import Binary, KernelResources


class _Facts(msgspec.Struct):
    kernels: tuple[KernelResources, ...]
    log: str
    headers: tuple[str, ...]
    headers_digest: str


def digest_of_files(paths: Iterable[str]) -> str:
    """Return one digest of the files' contents in the given order; raises OSError."""
    return digest(*(Path(path).read_bytes() for path in paths))


def digest_of_headers(paths: Iterable[str]) -> str:
    """Return their digest, or one that none has when one of them is there no more."""
    try:
        return digest_of_files(paths)
    except OSError:
        return ""


def load_binary(
    entry: Entry, arch: str, digest_files: Callable[[tuple[str, ...]], str] = digest_of_files
) -> Binary | None:
    """Return an entry's binary, or None if it is absent, damaged, foreign or older than a header.

    Who loads many entries may give a `digest_of_files` that remembers: all of them were compiled
    with the same dozens of headers.
    """
    if not (found := entry.load()):
        return None
    try:
        facts = msgspec.convert(found.facts, _Facts)
        if facts.headers_digest != digest_files(facts.headers):
            return None
    except (OSError, ValueError):
        return None
    return Binary(found.path, _one_object(found.content), arch, facts.kernels, facts.log)


def store_binary(entry: Entry, binary: Binary, headers: list[str], headers_digest: str) -> None:
    """Record a binary, whose cubin lies at its path, and the headers it was compiled with.

    Raises OSError.
    """
    facts = _Facts(binary.kernels, binary.log, tuple(headers), headers_digest)
    entry.store(binary.path, binary.image, msgspec.to_builtins(facts))


@functools.lru_cache(maxsize=16)
def _one_object(image: bytes) -> bytes:
    """Return the same object for equal images, so that a shared cubin is in memory once."""
    return image
