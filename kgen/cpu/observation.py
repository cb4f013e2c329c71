"""What an observed run tells: counts a launch, and the rules of memory that it broke."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass, fields
from typing import Any

from numpy.typing import NDArray

from kgen.errors import KernelFault

# The widths in bytes that the `_by_width` counts stand for, in this order.
WIDTHS = (1, 2, 4, 8, 16)

PerWidth = tuple[int, ...]
# What a MemoryFault may be.
OUT_OF_BOUNDS = "out_of_bounds"


@dataclass(frozen=True)
class Counts:
    """What one launch, or several added up, made a GPU do.

    Loads, stores, atomics, exponentials, shuffles, votes, warp_syncs and barriers are instructions
    of a warp, however many of its lanes take part; only `thread_exponentials` are a lane's. Bytes
    are those that the lanes ask for; a sector is 32 aligned bytes of global memory, counted once an
    instruction. `shared_bank_conflicts` are the turns that an access of shared memory takes beyond
    those that its width needs. A warp reduction is a series of shuffles over halving distances.
    """

    kernel: str
    global_loads_by_width: PerWidth
    global_stores_by_width: PerWidth
    shared_loads_by_width: PerWidth
    shared_stores_by_width: PerWidth
    global_bytes_loaded: int
    global_bytes_stored: int
    global_sectors_loaded: int
    global_sectors_stored: int
    shared_bytes_loaded: int
    shared_bytes_stored: int
    shared_bank_conflicts: int
    atomics: int
    exponentials: int
    thread_exponentials: int
    shuffles: int
    votes: int
    warp_syncs: int
    barriers: int
    warp_reductions: int

    @property
    def global_accesses(self) -> int:
        """Warp instructions that access global memory."""
        return self.global_loads + self.global_stores

    @property
    def global_sectors(self) -> int:
        """Sectors that are loaded, and those that are stored."""
        return self.global_sectors_loaded + self.global_sectors_stored

    @property
    def global_loads(self) -> int:
        """Warp instructions that load from global memory, of all widths."""
        return sum(self.global_loads_by_width)

    @property
    def global_stores(self) -> int:
        """Warp instructions that store to global memory, of all widths."""
        return sum(self.global_stores_by_width)

    @property
    def shared_loads(self) -> int:
        """Warp instructions that load from shared memory, of all widths."""
        return sum(self.shared_loads_by_width)

    @property
    def shared_stores(self) -> int:
        """Warp instructions that store to shared memory, of all widths."""
        return sum(self.shared_stores_by_width)

    def __add__(self, other: Counts) -> Counts:
        """Return the sums, under both kernels' names."""
        values: dict[str, Any] = {}
        for field in fields(self):
            a, b = getattr(self, field.name), getattr(other, field.name)
            values[field.name] = (
                tuple(map(sum, zip(a, b, strict=True))) if isinstance(a, tuple) else a + b
            )
        return Counts(**{**values, "kernel": f"{self.kernel} + {other.kernel}"})

    def as_dict(self) -> dict[str, object]:
        """Return all figures by name, with totals over widths, and widths in bytes as keys."""
        totals = ("global_loads", "global_stores", "shared_loads", "shared_stores")
        names = [field.name for field in fields(self)]
        by_width = [name for name in names if name.endswith("_by_width")]
        return {
            "kernel": self.kernel,
            **{name: getattr(self, name) for name in (*totals, *names)},
            **{name: dict(zip(WIDTHS, getattr(self, name), strict=True)) for name in by_width},
        }


@dataclass(frozen=True)
class Access:
    """Who accessed memory, and how: `kind` is read, write or atomic.

    `line` is that of the source, 0 when unknown; `thread` is -1 when no thread is to blame.
    """

    kind: str
    line: int
    block: int
    thread: int


@dataclass(frozen=True)
class MemoryFault:
    """An access that CUDA does not define, or an output that is not what it should be.

    `what` says which: out_of_bounds, uninitialised, unwritten, written_twice or unfenced (a bulk
    copy of, or over, what no proxy fence lets it see). The first one is
    `offset` bytes from the start of the buffer or shared array; `times` is how often the
    instruction did it, or how many elements are unwritten. `message` is the whole as a sentence.
    """

    what: str
    kernel: str
    buffer: str
    offset: int
    access: Access
    times: int
    message: str


@dataclass(frozen=True)
class Race:
    """Two accesses of one location that nothing orders, at least one of them a write.

    `second` ran after `first` this time. The other fields are those of a MemoryFault.
    """

    kernel: str
    buffer: str
    offset: int
    first: Access
    second: Access
    times: int
    message: str


@dataclass(frozen=True)
class Observation:
    """What an observed run computed (`y`), did (one Counts a launch) and broke."""

    y: NDArray[Any]
    counts: tuple[Counts, ...]
    memory_faults: tuple[MemoryFault, ...]
    races: tuple[Race, ...]

    @property
    def total(self) -> Counts:
        """The counts of all launches together."""
        return functools.reduce(operator.add, self.counts)


class ObservedFault(KernelFault):
    """A fault ended an observed run; what the kernel broke until then comes with it.

    Where an access out of bounds led to the fault, the message is of that.
    """

    def __init__(
        self, fault: KernelFault, memory_faults: tuple[MemoryFault, ...], races: tuple[Race, ...]
    ) -> None:
        outside = [found.message for found in memory_faults if found.what == OUT_OF_BOUNDS]
        super().__init__(outside[0] if outside else str(fault), fault.line)
        self.memory_faults, self.races = memory_faults, races
