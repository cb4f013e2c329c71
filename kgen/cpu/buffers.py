"""The memory of one run: matrices between guards, in a file that the executable maps."""

from __future__ import annotations

import mmap
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

import numpy as np
from numpy.typing import NDArray

from kgen.cachedir import temporary_dir
from kgen.errors import MachineTrouble

# NaNs in every type that no arithmetic produces: reads of one show in the output, writes to one in
# the guard. There are two, since a kernel that computes on past both matrices copies one guard to
# the other. They are as narrow as the narrowest element, so that no place beside one is left out.
READ_ONLY_GUARD = np.uint16(0x7FF9)
WRITABLE_GUARD = np.uint16(0x7FFA)
# What kernels may do with a buffer; an output is undefined until they write it.
READ_ONLY = "read_only"
WRITABLE = "writable"
OUTPUT = "output"
# Undefined until it is written, too, but nobody has to write all of it.
SCRATCH = "scratch"
_WORD_BYTES = 2
_MEMORY = Path("/dev/shm")
_PAGE_BYTES = mmap.ALLOCATIONGRANULARITY
_MIN_GUARD_BYTES = 4096


@dataclass(frozen=True)
class Region:
    """One buffer's part of the file; all numbers are bytes.

    The `size` bytes of data start at `start` in the region, which begins at `offset` in the file
    and is `length` long: what lies around the data is guard. The data are all of the buffer but
    its first `skipped` bytes, which have addresses and no memory.
    """

    name: str
    offset: int
    start: int
    size: int
    length: int
    role: str
    skipped: int = 0

    @property
    def is_writable(self) -> bool:
        """False when a kernel that writes there crashes."""
        return self.role != READ_ONLY

    @property
    def guard_word(self) -> np.uint16:
        """The NaN that fills the guard."""
        return WRITABLE_GUARD if self.is_writable else READ_ONLY_GUARD

    @property
    def guard_start(self) -> int:
        """The first byte, counted from the region's begin, of the guard behind the data."""
        return self.start + self.size


class Buffers:
    """The buffers of one run, one behind the other in a nameless file, as a context manager."""

    def __init__(self) -> None:
        self._regions: list[Region] = []
        self._end = 0
        self._file: IO[bytes] | None = None

    def add(
        self, name: str, size: int, guard: int, shift: int, role: str, skipped: int = 0
    ) -> Region:
        """Plan the `size` bytes of a buffer behind its first `skipped` ones.

        At least `guard` bytes lie before and behind them. The buffer, skipped bytes included,
        starts on a page, as aligned as cudaMalloc's pointers, and `shift` bytes further.
        """
        in_page = (shift + skipped) % _PAGE_BYTES
        start = _round_up(max(guard, _MIN_GUARD_BYTES), _PAGE_BYTES) + in_page
        length = _round_up(start + size + max(guard, _MIN_GUARD_BYTES), _PAGE_BYTES)
        region = Region(name, self._end, start, size, length, role, skipped)
        self._regions.append(region)
        self._end += length
        return region

    def __enter__(self) -> Self:
        self._file = _open_file(self._end)
        self._bytes = np.memmap(self._file, np.uint8, "r+", shape=(self._end,))
        for region in self._regions:
            for guard in self._guards(region):
                guard[:] = region.guard_word
        return self

    def __exit__(self, *error: object) -> None:
        del self._bytes
        assert self._file
        self._file.close()

    @property
    def descriptor(self) -> int:
        """The file descriptor that the executable inherits."""
        assert self._file
        return self._file.fileno()

    def region(self, name: str) -> Region:
        """Return the buffer of that name."""
        return next(region for region in self._regions if region.name == name)

    def data(self, region: Region) -> NDArray[np.uint8]:
        """Return a view of the buffer's data, guards and skipped bytes excluded."""
        first = region.offset + region.start
        return self._bytes[first : first + region.size]

    def first_overwritten(self, region: Region) -> int | None:
        """Return the first changed guard byte, counted from the buffer's begin, or None."""
        for guard, begin in zip(self._guards(region), (0, region.guard_start), strict=True):
            changed = np.flatnonzero(guard != region.guard_word)
            if changed.size:
                in_region = begin + int(changed[0]) * _WORD_BYTES
                return region.skipped + in_region - region.start
        return None

    def job_lines(self) -> list[str]:
        """Return the job's lines that tell the executable what to map."""
        return [
            f"buffer {region.name} {self.descriptor} {region.offset} {region.length} "
            f"{region.start} {region.size} {region.skipped} {region.role}"
            for region in self._regions
        ]

    def _guards(self, region: Region) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
        words = self._bytes[region.offset : region.offset + region.length].view(np.uint16)
        return words[: region.start // _WORD_BYTES], words[region.guard_start // _WORD_BYTES :]


def _open_file(size: int) -> IO[bytes]:
    """Return a file that has no name, so that nothing remains of it however the run ends.

    In memory where that is possible; /dev/shm may be small, and is then known to be full only
    when the space is really asked for.
    """
    try:
        return _file_in(_MEMORY, size)
    except OSError:
        folder = temporary_dir()
    try:
        return _file_in(folder, size)
    except OSError:
        raise MachineTrouble(f"a run needs {size >> 20} MB in {folder}: make room for it") from None


def _file_in(folder: Path, size: int) -> IO[bytes]:
    file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - the caller closes it
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except OSError:
        file.close()
        raise
    return file


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
