"""The axes of a spec: their fields, defaults and meanings, and what a user types for them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from kgen.overlay import OURS, Overlay
from kgen.specs.choice import (
    Cache,
    Choice,
    Element,
    Exp,
    Hint,
    Merge,
    NextRow,
    Normalize,
    Op,
    RowIo,
    RowLoop,
    RowOrder,
    RowSplit,
    Side,
    Topology,
    Trip,
    Unaligned,
    Update,
    VecScans,
)
from kgen.specs.declared import choices, chosen

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
class Axes:
    """The axes as fields; `kgen.specs.spec.Spec` is what follows from them."""

    version: str
    op: Op = choice_axis("op", "softmax", "what is computed of each row")
    dtype: Element = choice_axis("dtype", "float32", "the type of the input")
    out_dtype: Element = choice_axis("out_dtype", "float32", "the type of the output")
    target: Side = choice_axis("target", "device", "where the code runs")
    threads_per_row: int | None = axis(
        None, "threads of a block that share a row: 1 to 32, or whole warps; auto is all of them"
    )
    rows_at_once: int = axis(
        1, "rows that the threads of a row work on at once: 1, 2 or 4, kept in registers"
    )
    row_split: RowSplit = choice_axis("row_split", "none", "the blocks that share a row")
    blocks_per_row: int = axis(
        1, "blocks that share a row in one launch: up to 16 of a cluster, or 128 co_resident"
    )
    row_order: RowOrder = choice_axis(
        "row_order", "interleaved", "how a row is dealt to the blocks that share it in one launch"
    )
    row_loop: RowLoop = choice_axis("row_loop", "once", "whether blocks go on to further rows")
    row_io: RowIo = choice_axis("row_io", "direct", "where the scans find the rows of a block")
    next_row: NextRow = choice_axis("next_row", "none", "when a block's next row is loaded")
    topology: Topology = choice_axis(
        "topology", "tree", "how the threads' partial results meet in a block"
    )
    merge: Merge = choice_axis("merge", "separate", "maximum and sum reduced apart, or as one pair")
    update: Update = choice_axis("update", "three_pass", "what a thread does with an element")
    cache: Cache = choice_axis("cache", "none", "what is kept between the scans, and where")
    vec_size: int = axis(1, "elements of one access: 1, 2, 4 or 8, of up to 16 bytes", "vec")
    vec_scans: VecScans = choice_axis("vec_scans", "none", "the scans that use vector accesses")
    unaligned: Unaligned = choice_axis(
        "unaligned", "scalar_row", "what rows off a vector boundary do"
    )
    loads: Hint = choice_axis("loads", "plain", "what reading the input tells the caches")
    stores: Hint = choice_axis("stores", "plain", "what writing the output tells the caches")
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


AXES = {f.name: f for f in fields(Axes) if f.metadata}
CHOICE_AXES = frozenset(name for name, f in AXES.items() if isinstance(f.default, Choice))
# What a sweep over everything tries on the axes of numbers; on the others it tries every choice.
SWEPT_NUMBERS: dict[str, tuple[int | None, ...]] = {
    "threads_per_row": (None, 1, 2, 4, 8, 16, 32),
    "rows_at_once": (1, 2, 4),
    "blocks_per_row": (1, 2, 4, 8, 16),
    "vec_size": (1, 2, 4, 8),
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


def format_value(value: Any) -> str:
    """Write an axis value the way a user types it."""
    if value is None:
        return AUTO
    return str(value).lower() if isinstance(value, bool) else str(value)


def short_name(axis_name: str) -> str:
    """Return the name a user types for an axis: `items` for `items_per_thread`."""
    return axis_name if axis_name == ROW_MAP else AXES[axis_name].metadata["short"] or axis_name
