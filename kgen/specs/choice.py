"""The records of choices: what a choice of each axis states about itself.

Everybody asks these facts and nobody which choice it is, so a new choice is a declaration in a
`choices.toml` (kgen's beside its templates, or a user's) and at most one template.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kgen.specs.formula import Formula, formula

# The widest access of a thread.
MAX_ACCESS_BYTES = 16


@dataclass(frozen=True, eq=False, repr=False)
class Choice(str):
    """A choice, equal to the word that a user types for it.

    `help` says what it is, `phrase` is its part of a kernel's title, `requires` the least
    architecture that has it (`sm_90`; '' for all). Its code is in AXIS/`template`.j2, if anywhere.
    """

    word: str
    template: str = ""
    help: str = ""
    phrase: str = ""
    requires: str = ""

    def __new__(cls, word: str, *facts: object, **named: object) -> Choice:
        """Make the text that the choice is."""
        return super().__new__(cls, word)

    def unlike(self, other: Choice) -> int:
        """Return how many facts tell this choice from another one of its axis."""
        words = ("word", "template", "help", "phrase")
        mine, others = vars(self), vars(other)
        return sum(mine[name] != others[name] for name in mine if name not in words)

    def __getnewargs__(self) -> tuple[str]:
        """Return what a copy in another process is made of, beside the facts."""
        return (self.word,)


@dataclass(frozen=True, eq=False, repr=False)
class Op(Choice):
    """What is computed of a row.

    `input` is what is taken of an element x of the matrix, `output` the result for such an x,
    `sums` the terms of row_sum; all in float64 are the reference. An error is judged relative to
    `error_scale`, which may name y (the element's reference) and y_max (its row's largest), and
    `error_words` say what that is.
    `keeps_exps`: the output can be made of exp(x - m) alone; `normalizes`: by dividing by the sum,
    so that the axis normalize means something; `sum_is_one`: the outputs of a row add up to 1.
    """

    input: Formula = formula("x")
    output: Formula = formula("x")
    sums: Formula = formula("exp(x - row_max)")
    error_scale: Formula = formula("y_max")
    error_words: str = "the row's largest value"
    keeps_exps: bool = False
    normalizes: bool = False
    sum_is_one: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Side(Choice):
    """Where the code runs: on the device, or on the host."""

    is_host: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class RowSplit(Choice):
    """How a row is split over blocks, and how these meet.

    `tasks` counts the pieces of work for blocks, `block_cols` the columns of one.
    `kernel_per_phase`: the blocks meet at the boundaries of kernels, in `workspace_bytes` of global
    memory that are zero before every call.
    `whole_blocks`: each of them has all its threads on the row, and `one_row` only.
    `cluster_size` blocks are launched as a cluster. `in_one_launch`: `blocks_per_row` blocks share
    a row and meet while they run, at most `most_blocks` of them; `is_co_resident`: all blocks of
    the launch have to run at the same time. A row has `states`, one of each warp or block, in
    shared memory of every block, beside `static_bytes` of what it takes that they come.
    `orders_memory`: so does meeting, for the threads of one block. `includes` are the headers that
    its code needs.
    """

    tasks: Formula = formula("ceil_div(rows, rows_per_block)")
    block_cols: Formula = formula("cols")
    workspace_bytes: Formula = formula("0")
    cluster_size: Formula = formula("1")
    states: Formula = formula("row_width // 32")
    static_bytes: Formula = formula("0")
    kernel_per_phase: bool = False
    whole_blocks: bool = False
    one_row: bool = False
    in_one_launch: bool = False
    orders_memory: bool = True
    is_co_resident: bool = False
    most_blocks: int = 1
    includes: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class RowLoop(Choice):
    """How many blocks are launched for the `tasks`; `repeats`: a block goes on to further rows."""

    grid: Formula = formula("tasks")
    repeats: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class RowOrder(Choice):
    """How a row is dealt to its blocks; `in_parts`: each has one piece, by the template's Part."""

    in_parts: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class RowIo(Choice):
    """Where the scans of a row find it, and leave the output.

    `in_chunks`: the rows that a block has at a time, which are one piece of memory, are copied to
    `shared_bytes` of dynamic shared memory, worked on there and copied back, with the help of
    `static_bytes` of static shared memory. `includes` are the headers that its code needs.
    """

    in_chunks: bool = False
    shared_bytes: Formula = formula("0")
    static_bytes: Formula = formula("0")
    includes: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class NextRow(Choice):
    """When a block that goes on to further rows loads the next one.

    `is_ahead`: while it works on this one; `in_shared`: its vectors wait in `shared_bytes` of
    dynamic shared memory, which `static_bytes` of static shared memory help to fill, `is_bulk`: by
    one thread. A thread keeps its part of `rows_kept` rows in registers. `includes` are the headers
    that its code needs.
    """

    is_ahead: bool = False
    rows_kept: int = 1
    in_shared: bool = False
    is_bulk: bool = False
    shared_bytes: Formula = formula("0")
    static_bytes: Formula = formula("0")
    includes: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class RowMap(Choice):
    """A short word that sets several axes."""

    sets: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Topology(Choice):
    """How the threads of a row combine what they found: the template's `row_reduce`.

    It `connects` rows of so many threads, and `limit` says why no others. It takes
    `shared_values` values of shared memory a block. `needs_identity`: it combines values of
    nobody; `orders_memory`: what the row's threads wrote before it, all of them may read after it;
    `reusable`: it may be called again at once, without a barrier of the row's threads between.
    `of_warps`: it combines what the lanes of a warp know alike; `across_blocks`: also the blocks'.
    """

    connects: Formula = formula("row_threads > 0")
    limit: str = ""
    shared_values: Formula = formula("0")
    needs_identity: bool = False
    orders_memory: bool = False
    reusable: bool = False
    of_warps: bool = False
    across_blocks: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Merge(Choice):
    """Whether maximum and sum are reduced apart or as a pair; `by_warp`: a warp's, not a lane's."""

    is_paired: bool = False
    by_warp: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Update(Choice):
    """What a thread does with an element on the way to the row's maximum and sum.

    `is_online`: both are found in one scan; `is_tiled`: tile by tile, by all threads of the row;
    `misses_inf`: a +inf leaves the sum finite, so it has to be looked for.
    """

    is_online: bool = False
    is_tiled: bool = False
    misses_inf: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Cache(Choice):
    """What is kept between the scans of a row.

    `place` is registers, shared, output or nothing; `keeps_exps`: exponentials instead of inputs.
    `capacity` is the longest row that fits, `shared_bytes` the dynamic shared memory of a block,
    beside `static_bytes` of what it takes that the row comes. `is_copied`: the matrix's elements
    are copied there as they are, before the scans; `is_bulk`: the vectors of a row by one thread.
    `includes` are the headers that its code needs.
    """

    place: str = ""
    keeps_exps: bool = False
    capacity: Formula | None = None
    shared_bytes: Formula = formula("0")
    static_bytes: Formula = formula("0")
    is_copied: bool = False
    is_bulk: bool = False
    includes: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class VecScans(Choice):
    """Which scans use vector accesses: those that reduce, the one that writes."""

    reduces: bool = False
    writes: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Unaligned(Choice):
    """What vectorised scans do on a row off a vector boundary.

    `whole_row`: they go scalar; `is_shifted`: vectors start at the boundary below the row.
    """

    whole_row: bool = False
    is_shifted: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Hint(Choice):
    """What an access tells the caches: the `call` that makes it; '' for a plain one."""

    call: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Trip(Choice):
    """Whether the loops over a register cache have a run-time trip count."""

    is_runtime: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Exp(Choice):
    """The form of the exponential: the function that is called, and whether hosts lack it.

    `double_call` is its form for double; '' if there is none.
    """

    call: str = ""
    double_call: str = ""
    device_only: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Normalize(Choice):
    """How an exponential becomes an output."""

    divides: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Element(Choice):
    """The type of a matrix's elements: `c_type` in code, `bytes` in memory.

    `compute` is the element that is computed with, '' for itself; `to_compute` and `from_compute`
    are the functions that convert, rounding to nearest even, '' where nothing is converted. A type
    that is computed with has its functions of math end in `suffix`, and `largest` is its largest
    number. `includes` are the headers that its code needs.
    """

    c_type: str = ""
    bytes: int = 0
    compute: str = ""
    to_compute: str = ""
    from_compute: str = ""
    suffix: str = ""
    largest: str = ""
    includes: str = ""

    @property
    def vec_sizes(self) -> tuple[int, ...]:
        """The elements that one access can have: sixteen bytes is the widest."""
        return tuple(size for size in (1, 2, 4, 8) if size * self.bytes <= MAX_ACCESS_BYTES)
