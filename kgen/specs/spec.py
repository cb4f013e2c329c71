"""The spec: one frozen value that says everything about a softmax kernel.

Each field is an axis. A value of `Spec` is only a point on the axes and may be invalid; the rules
that tell valid points from invalid ones are in `kgen.specs.rules`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kgen.limits import WARP_SIZE, arch_number
from kgen.specs.declared import choices, chosen
from kgen.specs.facts import ChoiceFacts
from kgen.specs.fields import AXES, CHOICE_AXES, ROW_MAP, row_map_axes
from kgen.specs.formula import Formula, formula

# No GPU holds this many blocks at once, and row counters can still take one step past the last row.
MAX_STRIDE_BLOCKS = 2**18
# The shape when no other is named, and the row length that `auto` items cover: the main study's.
DEFAULT_ROWS = 1024
DEFAULT_COLS = 4096


@dataclass(frozen=True, kw_only=True)
class Spec(ChoiceFacts):
    """A point on the axes. `version` names the version that it was derived from.

    `overlay` are the templates that it is written with.
    """

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
    def groups_per_block(self) -> int:
        """Groups of threads in a block, each of which has rows of its own."""
        return max(1, self.threads_per_block // self.row_threads)

    @property
    def rows_per_block(self) -> int:
        """Rows that a block works on at the same time."""
        return self.groups_per_block * self.rows_at_once

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
        return int(self._dynamic_shared.of(self.resolve(cols), cols=cols))

    @property
    def shared_formula(self) -> Formula:
        """The dynamic shared memory of a block in bytes, as a formula of cols."""
        return self.resolve()._known(self._dynamic_shared)

    @property
    def _dynamic_shared(self) -> Formula:
        if self.waits_in_shared:
            return self.next_row.shared_bytes
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
        return max(asked, key=arch_number)

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
    def values_kept(self) -> int:
        """Values that a thread has in registers, of all its rows and of those on their way."""
        return self.slots * self.rows_kept

    @property
    def rows_kept(self) -> int:
        """Rows of which a thread has its part in registers."""
        return self.rows_at_once * self.next_row.rows_kept

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


def differences(old: Spec, new: Spec) -> dict[str, tuple[Any, Any]]:
    """Return the axes in which two specs differ, each with its old and new value."""
    before, after = vars(old), vars(new)
    return {name: (before[name], after[name]) for name in AXES if before[name] != after[name]}
