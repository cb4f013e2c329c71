"""The spec: one frozen value that says everything about a softmax kernel.

Each field is an axis. A value of `Spec` is only a point on the axes and may be invalid; the rules
that tell valid points from invalid ones are in `kgen.specs.rules`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from kgen.limits import WARP_SIZE
from kgen.overlay import OURS, Overlay
from kgen.specs.choice import (
    FLOAT32,
    Cache,
    Choice,
    Element,
    Exp,
    Merge,
    Normalize,
    Op,
    RowIo,
    RowLoop,
    RowSplit,
    Side,
    Topology,
    Trip,
    Unaligned,
    Update,
    VecScans,
)
from kgen.specs.declared import choices, chosen
from kgen.specs.formula import Formula, formula

# No GPU holds this many blocks at once, and row counters can still take one step past the last row.
MAX_STRIDE_BLOCKS = 2**18
# The shape when no other is named, and the row length that `auto` items cover: the main study's.
DEFAULT_ROWS = 1024
DEFAULT_COLS = 4096
# The short word for several axes, and how `auto` is written where a choice sets a number.
ROW_MAP = "row_map"
AUTO = "auto"


def axis(default: Any, help: str, short: str | None = None) -> Any:
    """Declare an axis: its default, what it means, and the name a user types for it."""
    return field(default=default, metadata={"help": help, "short": short})


def choice_axis(name: str, default: str, help: str) -> Any:
    """Declare an axis whose choices are declared in `choices.toml`."""
    return axis(chosen(name, default), help)


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A point on the axes. `version` names the version that it was derived from.

    `overlay` are the templates that it is written with.
    """

    version: str
    op: Op = choice_axis("op", "softmax", "what is computed of each row")
    target: Side = choice_axis("target", "device", "where the code runs")
    threads_per_row: int | None = axis(
        None, "threads of a block that share a row: 1 to 32, or whole warps; auto is all of them"
    )
    row_split: RowSplit = choice_axis("row_split", "none", "the blocks that share a row")
    blocks_per_row: int = axis(
        1, "blocks that share a row in one launch: up to 16 of a cluster, or 128 co_resident"
    )
    row_loop: RowLoop = choice_axis("row_loop", "once", "whether blocks go on to further rows")
    row_io: RowIo = choice_axis("row_io", "direct", "where the scans find the rows of a block")
    topology: Topology = choice_axis(
        "topology", "tree", "how the threads' partial results meet in a block"
    )
    merge: Merge = choice_axis("merge", "separate", "maximum and sum reduced apart, or as one pair")
    update: Update = choice_axis("update", "three_pass", "what a thread does with an element")
    cache: Cache = choice_axis("cache", "none", "what is kept between the scans, and where")
    vec_size: int = axis(1, "elements of one access: 1, 2 or 4", "vec")
    vec_scans: VecScans = choice_axis("vec_scans", "none", "the scans that use vector accesses")
    unaligned: Unaligned = choice_axis(
        "unaligned", "scalar_row", "what rows off a vector boundary do"
    )
    prefetch: bool = axis(False, "the writing scan loads the next vector before it computes")
    items_per_thread: int | None = axis(
        None, "accesses a thread keeps in registers; auto is the least that covers the row", "items"
    )
    trip: Trip = choice_axis("trip", "static", "trip count of the loops over the register cache")
    tile_size: int | None = axis(
        None, "columns of a tile (online_tile, row_split=tiles); auto is 8 a thread", "tile"
    )
    threads_per_block: int = axis(256, "threads of a block, 1 to 1024", "threads")
    grid_blocks: int | None = axis(
        None, "most blocks of a grid-stride launch; auto is one a row, up to 262144", "grid"
    )
    min_blocks_per_sm: int | None = axis(None, "second argument of __launch_bounds__", "min_blocks")
    exp: Exp = choice_axis("exp", "expf", "the form of the exponential")
    normalize: Normalize = choice_axis(
        "normalize", "reciprocal", "divide, or multiply by the reciprocal"
    )
    static_cols: int | None = axis(None, "row length fixed at compile time; auto is run-time")
    overlay: Overlay = OURS

    def replace(self, **changes: Any) -> Spec:
        """Return this spec with some fields changed; a word stands for the choice it names.

        `row_map` sets the axes that it is short for.
        """
        if ROW_MAP in changes:
            changes = {**row_map_axes(changes.pop(ROW_MAP), self.overlay), **changes}
        # A sweep makes these by the 100,000, and dataclasses.replace takes ten times as long.
        made = object.__new__(Spec)
        values = vars(made)
        values.update(vars(self))
        values.update(changes)
        if len(values) != len(vars(self)):
            raise TypeError(f"a spec has no field {', '.join(changes.keys() - vars(self).keys())}")
        for name, value in changes.items():
            if type(value) is str and name != "version":
                values[name] = chosen(name, value, made.overlay)
        return made

    @property
    def axes(self) -> dict[str, Any]:
        """The version and the value of every axis."""
        return {name: getattr(self, name) for name in ("version", *AXES)}

    @property
    def is_host(self) -> bool:
        """Whether this is plain C++ for the host rather than a kernel."""
        return self.target.is_host

    @property
    def element(self) -> Element:
        """The type of the matrix."""
        return FLOAT32

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        return self.element.bytes

    @property
    def row_threads(self) -> int:
        """Threads of one block that share a row (or the block's tile of it)."""
        return self.threads_per_row or self.threads_per_block

    @property
    def row_width(self) -> int:
        """Threads that share a row in one launch, those of all its blocks."""
        return self.row_threads * self.blocks_per_row

    @property
    def row_states(self) -> int:
        """The states that the warps or blocks of a row tell each other."""
        return int(self.row_split.states.of(self))

    @property
    def takes_turns(self) -> bool:
        """Whether rows have two arrays in turn for what their blocks tell each other."""
        return self.row_loop.repeats and self.row_split.in_one_launch

    @property
    def cluster_size(self) -> int:
        """Blocks that are launched as a cluster; 1: none."""
        return int(self.row_split.cluster_size.of(self))

    @property
    def rows_per_block(self) -> int:
        """Rows that a block works on at the same time."""
        return max(1, self.threads_per_block // self.row_threads)

    @property
    def grid(self) -> Formula:
        """The blocks of a launch, as a formula of rows and cols."""
        if self.is_host:
            return formula("1")
        tasks = self._known(self.row_split.tasks)
        return self._known(self.row_loop.grid).known({"tasks": tasks})

    def _known(self, of: Formula) -> Formula:
        """Return a formula with the numbers of this spec put in."""
        return of.known({name: getattr(self, name) for name in of.names if hasattr(self, name)})

    def grid_for(self, rows: int, cols: int) -> int:
        """Return the blocks of a launch on a non-empty rows x cols matrix."""
        tasks = self.row_split.tasks.of(self, rows=rows, cols=cols)
        return 1 if self.is_host else int(self.row_loop.grid.of(self, tasks=tasks))

    def shared_bytes(self, cols: int) -> int:
        """Return the dynamic shared memory of a block for rows of `cols`."""
        return int(self._dynamic_shared.of(self, cols=cols))

    @property
    def shared_formula(self) -> Formula:
        """The dynamic shared memory of a block in bytes, as a formula of cols."""
        return self._known(self._dynamic_shared)

    @property
    def _dynamic_shared(self) -> Formula:
        return self.row_io.shared_bytes if self.in_chunks else self.cache.shared_bytes

    @property
    def workspace_formula(self) -> Formula:
        """The bytes of global memory that the blocks of the rows share, as a formula of rows."""
        return self._known(self.row_split.workspace_bytes)

    @property
    def serial_additions(self) -> Formula:
        """How many additions one thread makes in sequence for a row, as a formula of cols."""
        tiles = " + ceil_div(cols, tile_cols)" if self.uses_tiles else ""
        text = f"ceil_div(block_cols, row_threads) + {WARP_SIZE}{tiles}"
        return self._known(formula(text).known({"block_cols": self.row_split.block_cols}))

    @property
    def requires(self) -> str:
        """The least architecture that has all the choices, such as `sm_90`; '' for any."""
        asked: list[str] = [getattr(self, name).requires for name in CHOICE_AXES]
        return max(asked, key=_arch_number)

    @property
    def row_map(self) -> str:
        """The short word for the axes that say which threads work on a row; '' if none fits."""
        for word in choices(ROW_MAP, self.overlay):
            axes = row_map_axes(word, self.overlay)
            if all(getattr(self, name) == value for name, value in axes.items()):
                return word
        return ""

    def workspace_bytes(self, rows: int) -> int:
        """Return the bytes of global memory that the blocks of the rows share."""
        return int(self.row_split.workspace_bytes.of(self, rows=rows))

    @property
    def is_online(self) -> bool:
        """Whether maximum and sum are found in the same scan."""
        return self.update.is_online

    @property
    def is_tiled(self) -> bool:
        """Whether the scan that reduces goes tile by tile."""
        return self.update.is_tiled

    @property
    def runs_at_once(self) -> bool:
        """Whether all blocks of a launch have to run at the same time."""
        return self.row_split.is_co_resident

    @property
    def in_registers(self) -> bool:
        """Whether a thread's part of the row stays in registers."""
        return self.cache.place == "registers"

    @property
    def keeps_exps(self) -> bool:
        """Whether the writing scan starts from exponentials instead of inputs."""
        return self.cache.keeps_exps

    @property
    def in_shared(self) -> bool:
        """Whether the row's inputs stay in dynamic shared memory."""
        return self.cache.place == "shared"

    @property
    def in_chunks(self) -> bool:
        """Whether the rows of a block are in dynamic shared memory while they are worked on."""
        return self.row_io.in_chunks

    @property
    def takes_shared(self) -> bool:
        """Whether a block takes dynamic shared memory."""
        return self.in_shared or self.in_chunks

    @property
    def parks(self) -> bool:
        """Whether exponentials wait in the output for the writing scan."""
        return self.cache.place == "output"

    @property
    def vectorises(self) -> bool:
        """Whether any access is a vector."""
        return self.vec_size > 1

    @property
    def asks_alignment(self) -> bool:
        """Whether it matters how far behind a vector's boundary x and y are."""
        return self.vectorises or self.in_chunks

    @property
    def scans(self) -> int:
        """How many times the program reads the input from global memory."""
        if self.in_registers or self.takes_shared:
            return 1
        return 2 if self.is_online or self.keeps_exps else 3

    @property
    def vec_first(self) -> bool:
        """Whether the scans that reduce use vector accesses."""
        return self.vec_scans.reduces

    @property
    def vec_second(self) -> bool:
        """Whether the writing scan uses vector accesses."""
        return self.vec_scans.writes

    @property
    def uses_tiles(self) -> bool:
        """Whether `tile_size` means anything for this spec."""
        return self.is_tiled or "tile_cols" in self.row_split.tasks.names

    @property
    def stride_blocks(self) -> int:
        """The most blocks of a grid-stride launch."""
        return self.grid_blocks or MAX_STRIDE_BLOCKS // self.rows_per_block

    @property
    def tile_cols(self) -> int:
        """Columns of a tile; by default eight elements a thread."""
        return self.tile_size or 8 * self.row_threads

    @property
    def tail_slots(self) -> int:
        """Slots a thread needs for the fewer than vec_size elements that no vector covers."""
        return -(-self._tail_cols // self.row_width)

    @property
    def spare_cols(self) -> int:
        """Columns that a register cache surely holds beside its vectors."""
        return 0 if self.unaligned.is_shifted else self._tail_cols

    @property
    def _tail_cols(self) -> int:
        """The most columns behind the last vector."""
        is_whole = self.static_cols and self.static_cols % self.vec_size == 0
        return 0 if is_whole and not self.unaligned.is_shifted else self.vec_size - 1

    @property
    def tile_slots(self) -> int:
        """Elements of one tile that a thread holds."""
        groups = -(-self.tile_cols // (self.row_threads * self.vec_size))
        return groups * self.vec_size + self.tail_slots

    @property
    def slots(self) -> int:
        """Elements of the row that a thread holds; items_per_thread must be resolved."""
        assert self.items_per_thread is not None, "resolve the spec first"
        return self.items_per_thread * self.vec_size + self.tail_slots

    @property
    def capacity(self) -> int:
        """The longest row that the register cache holds; items_per_thread must be resolved."""
        assert self.cache.capacity, "only register caches have a capacity"
        assert self.items_per_thread is not None, "resolve the spec first"
        return int(self.cache.capacity.of(self))

    def items_for(self, cols: int) -> int:
        """Return the least items_per_thread that covers a row of `cols` elements."""
        before = self.vec_size - 1 if self.unaligned.is_shifted else 0
        return -(-((cols + before) // self.vec_size) // self.row_width)

    def items_on(self, cols: int | None = None) -> int | None:
        """Return items_per_thread, `auto` being the number that covers the row.

        The row length is `static_cols`, else `cols`, else DEFAULT_COLS. Without a register cache
        there is nothing to cover.
        """
        if not self.in_registers or self.items_per_thread is not None:
            return self.items_per_thread
        return self.items_for(self.static_cols or cols or DEFAULT_COLS)

    def resolve(self, cols: int | None = None) -> Spec:
        """Return the spec with `auto` items replaced by their number, as `items_on` has it."""
        items = self.items_on(cols)
        return self if items == self.items_per_thread else self.replace(items_per_thread=items)


AXES = {f.name: f for f in fields(Spec) if f.metadata}
CHOICE_AXES = frozenset(name for name, f in AXES.items() if isinstance(f.default, Choice))
# What a sweep over everything tries on the axes of numbers; on the others it tries every choice.
SWEPT_NUMBERS: dict[str, tuple[int | None, ...]] = {
    "threads_per_row": (None, 1, 2, 4, 8, 16, 32),
    "blocks_per_row": (1, 2, 4, 8, 16),
    "vec_size": (1, 2, 4),
    "items_per_thread": (None,),  # the least that covers the row
    "tile_size": (None,),  # eight columns a thread
    "threads_per_block": (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024),
    "grid_blocks": (None,),  # one a row
    "min_blocks_per_sm": (None,),  # no bound on registers
    "static_cols": (None,),  # one kernel for all row lengths
}


@functools.cache
def axes_set_by(name: str) -> frozenset[str]:
    """Return the axes that a name of the command line sets: itself, or those it is short for."""
    if name != ROW_MAP:
        return frozenset((name,))
    return frozenset().union(*(choice.sets for choice in choices(ROW_MAP).values()))  # type: ignore[attr-defined]


def _arch_number(arch: str) -> int:
    return int(arch.removeprefix("sm_") or 0)


def row_map_axes(word: str, overlay: Overlay = OURS) -> dict[str, Any]:
    """Return the axes that a row map is short for. Raises UsageError for an unknown one."""
    sets: Mapping[str, Any] = chosen(ROW_MAP, word, overlay).sets  # type: ignore[attr-defined]
    return {
        name: (
            (None if value == AUTO else value)
            if name not in CHOICE_AXES
            else chosen(name, value, overlay)
        )
        for name, value in sets.items()
    }


def differences(old: Spec, new: Spec) -> dict[str, tuple[Any, Any]]:
    """Return the axes in which two specs differ, each with its old and new value."""
    before, after = vars(old), vars(new)
    return {name: (before[name], after[name]) for name in AXES if before[name] != after[name]}


def format_value(value: Any) -> str:
    """Write an axis value the way a user types it."""
    if value is None:
        return AUTO
    return str(value).lower() if isinstance(value, bool) else str(value)


def short_name(axis_name: str) -> str:
    """Return the name a user types for an axis: `items` for `items_per_thread`."""
    return axis_name if axis_name == ROW_MAP else AXES[axis_name].metadata["short"] or axis_name
