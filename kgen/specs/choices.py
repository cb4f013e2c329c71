"""The choices of the axes that have a closed list of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class Choice(StrEnum):
    """The choices of an axis."""

    def __init_subclass__(cls) -> None:
        # Python 3.11 looks `RowMap.WARP` up through a descriptor written in Python, which the rules
        # would spend most of their time in; later releases keep members as plain attributes.
        super().__init_subclass__()
        for name, member in cls.__members__.items():
            type.__setattr__(cls, name, member)


class OwnChoice(str):
    """A choice that a user's templates add to an axis; all but templates treat it as it is `like`.

    `help` says what it is. See `kgen.specs.own`.
    """

    like: Choice
    help: str

    def __new__(cls, word: str, like: Choice, help: str) -> OwnChoice:
        """Make the choice that is written as `word`."""
        made = super().__new__(cls, word)
        made.like, made.help = like, help
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return what a copy in another process is made of."""
        return str(self), self.like, self.help


class RowMap(Choice):
    """Which threads work on a row."""

    HOST = "host"
    THREAD = "thread"
    WARP = "warp"
    BLOCK = "block"
    GRID_STRIDE = "grid_stride"
    GRID = "grid"


class Topology(Choice):
    """How the partial results of a row's threads in one block meet."""

    NONE = "none"
    TREE = "tree"
    WARP = "warp"
    WARPS_THREAD0 = "warps_thread0"
    TWO_LEVEL = "two_level"


class Merge(Choice):
    """Whether maximum and sum are reduced one after the other or as one pair."""

    SEPARATE = "separate"
    PAIRED = "paired"


class Update(Choice):
    """What a thread does with an element on the way to the row's maximum and sum."""

    THREE_PASS = "three_pass"
    ONLINE = "online"
    ONLINE_SHARED = "online_shared"
    ONLINE_BRANCH = "online_branch"
    ONLINE_TILE = "online_tile"


class Cache(Choice):
    """What is kept between the scans of a row, and where."""

    NONE = "none"
    INPUTS_REGISTERS = "inputs_registers"
    EXPS_REGISTERS = "exps_registers"
    EXPS_OUTPUT = "exps_output"
    INPUTS_SHARED = "inputs_shared"


class VecScans(Choice):
    """Which scans use vector accesses: those that reduce (first), the one that writes (second)."""

    NONE = "none"
    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class Unaligned(Choice):
    """What vectorised scans do on a row that does not start on a vector boundary."""

    SCALAR_ROW = "scalar_row"
    SCALAR_GROUPS = "scalar_groups"


class Trip(Choice):
    """Whether the loops over a register cache have a compile-time or a run-time trip count."""

    STATIC = "static"
    RUNTIME = "runtime"


class Exp(Choice):
    """The form of the exponential."""

    EXPF = "expf"
    FAST = "__expf"
    EXP2 = "exp2"


class Normalize(Choice):
    """How an exponential becomes an output."""

    DIVIDE = "divide"
    RECIPROCAL = "reciprocal"
