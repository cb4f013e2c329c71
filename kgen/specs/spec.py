"""The spec: one frozen value that says everything about a softmax kernel.

Each field is an axis. A value of `Spec` is only a point on the axes and may be invalid; the rules
that tell valid points from invalid ones are in `kgen.specs.rules`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from kgen.limits import WARP_SIZE
from kgen.specs.choices import (
    Cache,
    Exp,
    Merge,
    Normalize,
    OwnChoice,
    RowMap,
    Topology,
    Trip,
    Unaligned,
    Update,
    VecScans,
)

# No GPU holds this many blocks at once, and row counters can still take one step past the last row.
MAX_STRIDE_BLOCKS = 2**18
# The row length that `auto` items cover when no other is known: that of the main study.
DEFAULT_COLS = 4096


ONE_THREAD_A_ROW = frozenset({RowMap.HOST, RowMap.THREAD})
REGISTER_CACHES = frozenset({Cache.INPUTS_REGISTERS, Cache.EXPS_REGISTERS})
EXPS_CACHES = frozenset({Cache.EXPS_REGISTERS, Cache.EXPS_OUTPUT})


def axis(default: Any, help: str, short: str | None = None) -> Any:
    """Declare an axis: its default, what it means, and the name a user types for it."""
    return field(default=default, metadata={"help": help, "short": short})


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A point on the axes. `version` names the version that it was derived from.

    Where a user's templates add the choice, the axis has what it is like, and `own` has the choice.
    """

    version: str
    row_map: RowMap = axis(RowMap.BLOCK, "the threads that work on a row")
    topology: Topology = axis(Topology.TREE, "how the threads' partial results meet in a block")
    merge: Merge = axis(Merge.SEPARATE, "maximum and sum reduced apart, or as one pair")
    update: Update = axis(Update.THREE_PASS, "what a thread does with an element")
    cache: Cache = axis(Cache.NONE, "what is kept between the scans, and where")
    vec_size: int = axis(1, "elements of one access: 1, 2 or 4", "vec")
    vec_scans: VecScans = axis(VecScans.NONE, "the scans that use vector accesses")
    unaligned: Unaligned = axis(Unaligned.SCALAR_ROW, "what rows off a vector boundary do")
    prefetch: bool = axis(False, "the writing scan loads the next vector before it computes")
    items_per_thread: int | None = axis(
        None, "accesses a thread keeps in registers; auto is the least that covers the row", "items"
    )
    trip: Trip = axis(Trip.STATIC, "trip count of the loops over the register cache")
    tile_size: int | None = axis(
        None, "columns of a tile (online_tile) or of a block (grid); auto is 8 a thread", "tile"
    )
    threads_per_block: int = axis(256, "threads of a block, 1 to 1024", "threads")
    grid_blocks: int | None = axis(
        None, "most blocks of a grid-stride launch; auto is one a row, up to 262144", "grid"
    )
    min_blocks_per_sm: int | None = axis(None, "second argument of __launch_bounds__", "min_blocks")
    exp: Exp = axis(Exp.EXPF, "the form of the exponential")
    normalize: Normalize = axis(Normalize.RECIPROCAL, "divide, or multiply by the reciprocal")
    static_cols: int | None = axis(None, "row length fixed at compile time; auto is run-time")
    own: tuple[tuple[str, OwnChoice], ...] = ()

    def replace(self, **changes: Any) -> Spec:
        """Return this spec with some fields changed."""
        if self.own or OwnChoice in map(type, changes.values()):
            changes = self._with_likes(changes)
        # A sweep makes these by the 100,000, and dataclasses.replace takes ten times as long.
        made = object.__new__(Spec)
        values = vars(made)
        values.update(vars(self))
        values.update(changes)
        if len(values) != len(vars(self)):
            raise TypeError(f"a spec has no field {', '.join(changes.keys() - vars(self).keys())}")
        return made

    def _with_likes(self, changes: dict[str, Any]) -> dict[str, Any]:
        own = {axis: choice for axis, choice in self.own if axis not in changes}
        own |= {axis: value for axis, value in changes.items() if isinstance(value, OwnChoice)}
        likes = {axis: own[axis].like if axis in own else value for axis, value in changes.items()}
        return {**likes, "own": tuple(sorted(own.items()))}

    @property
    def written(self) -> dict[str, Any]:
        """The fields as they are written: a choice of the user's own where there is one."""
        return {**vars(self), **dict(self.own)} if self.own else vars(self)

    @property
    def is_host(self) -> bool:
        """Whether this is plain C++ for the host rather than a kernel."""
        return self.row_map is RowMap.HOST

    @property
    def threads_per_row(self) -> int:
        """Threads of one block that share a row (or the block's tile of it)."""
        if self.row_map in ONE_THREAD_A_ROW:
            return 1
        return WARP_SIZE if self.row_map is RowMap.WARP else self.threads_per_block

    @property
    def rows_per_block(self) -> int:
        """Rows that a block works on at the same time."""
        return max(1, self.threads_per_block // self.threads_per_row)

    @property
    def is_online(self) -> bool:
        """Whether maximum and sum are found in the same scan."""
        return self.update is not Update.THREE_PASS

    @property
    def is_tiled(self) -> bool:
        """Whether the scan that reduces goes tile by tile."""
        return self.update is Update.ONLINE_TILE

    @property
    def in_registers(self) -> bool:
        """Whether a thread's part of the row stays in registers."""
        return self.cache in REGISTER_CACHES

    @property
    def keeps_exps(self) -> bool:
        """Whether the writing scan starts from exponentials instead of inputs."""
        return self.cache in EXPS_CACHES

    @property
    def in_shared(self) -> bool:
        """Whether the row's inputs stay in dynamic shared memory."""
        return self.cache is Cache.INPUTS_SHARED

    @property
    def scans(self) -> int:
        """How many times the program reads the input from global memory."""
        if self.in_registers or self.in_shared:
            return 1
        return 2 if self.is_online or self.keeps_exps else 3

    @property
    def vec_first(self) -> bool:
        """Whether the scans that reduce use vector accesses."""
        return self.vec_scans in (VecScans.FIRST, VecScans.BOTH)

    @property
    def vec_second(self) -> bool:
        """Whether the writing scan uses vector accesses."""
        return self.vec_scans in (VecScans.SECOND, VecScans.BOTH)

    @property
    def uses_tiles(self) -> bool:
        """Whether `tile_size` means anything for this spec."""
        return self.is_tiled or self.row_map is RowMap.GRID

    @property
    def stride_blocks(self) -> int:
        """The most blocks of a grid-stride launch."""
        return self.grid_blocks or MAX_STRIDE_BLOCKS

    @property
    def tile_cols(self) -> int:
        """Columns of a tile; by default eight elements a thread."""
        return self.tile_size or 8 * self.threads_per_row

    @property
    def tail_slots(self) -> int:
        """Slots a thread needs for the fewer than vec_size elements that no vector covers."""
        return -(-(self.vec_size - 1) // self.threads_per_row)

    @property
    def tile_slots(self) -> int:
        """Elements of one tile that a thread holds."""
        groups = -(-self.tile_cols // (self.threads_per_row * self.vec_size))
        return groups * self.vec_size + self.tail_slots

    @property
    def slots(self) -> int:
        """Elements of the row that a thread holds; items_per_thread must be resolved."""
        assert self.items_per_thread is not None, "resolve the spec first"
        return self.items_per_thread * self.vec_size + self.tail_slots

    @property
    def capacity(self) -> int:
        """The longest row that the register cache holds; items_per_thread must be resolved."""
        assert self.items_per_thread is not None, "resolve the spec first"
        return self.items_per_thread * self.vec_size * self.threads_per_row + self.vec_size - 1

    def items_for(self, cols: int) -> int:
        """Return the least items_per_thread that covers a row of `cols` elements."""
        return -(-(cols // self.vec_size) // self.threads_per_row)

    def resolve(self, cols: int | None = None) -> Spec:
        """Return the spec with `auto` items replaced by the number that covers the row.

        The row length is `static_cols`, else `cols`, else DEFAULT_COLS.
        """
        if not self.in_registers or self.items_per_thread is not None:
            return self
        return self.replace(
            items_per_thread=self.items_for(self.static_cols or cols or DEFAULT_COLS)
        )


AXES = {f.name: f for f in fields(Spec) if f.metadata}
# What a sweep over everything tries on the axes of numbers; on the others it tries every choice.
SWEPT_NUMBERS: dict[str, tuple[int | None, ...]] = {
    "vec_size": (1, 2, 4),
    "items_per_thread": (None,),  # the least that covers the row
    "tile_size": (None,),  # eight columns a thread
    "threads_per_block": (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024),
    "grid_blocks": (None,),  # one a row
    "min_blocks_per_sm": (None,),  # no bound on registers
    "static_cols": (None,),  # one kernel for all row lengths
}


def differences(old: Spec, new: Spec) -> dict[str, tuple[Any, Any]]:
    """Return the axes in which two specs differ, each with its old and new value."""
    before, after = old.written, new.written
    return {name: (before[name], after[name]) for name in AXES if before[name] != after[name]}


def format_value(value: Any) -> str:
    """Write an axis value the way a user types it."""
    if value is None:
        return "auto"
    return str(value).lower() if isinstance(value, bool) else str(value)


def short_name(axis_name: str) -> str:
    """Return the name a user types for an axis: `items` for `items_per_thread`."""
    return AXES[axis_name].metadata["short"] or axis_name
