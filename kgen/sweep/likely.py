"""The candidates of a sweep that names shapes alone, and the order in which the model expects them.

What may be fastest on a shape is one of a few families, each a version with the axes that matter to
it. The cost model ranks all of them from their specs; only the first are compiled and timed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from kgen.limits import MAX_THREADS_PER_BLOCK, WARP_SIZE
from kgen.overlay import OURS, Overlay
from kgen.shape import Shape
from kgen.specs.declared import FLOAT32
from kgen.specs.formula import ceil_div
from kgen.specs.rules.caches import value_limit
from kgen.specs.spec import Spec
from kgen.specs.types import BOTH_FLOAT32, Types
from kgen.sweep.foretold import foretold_us
from kgen.sweep.model_gpu import REFERENCE_GPU
from kgen.sweep.plan import Plan
from kgen.sweep.point import Point
from kgen.sweep.space import Space

# Seconds that a shape's candidates may take together, and how many there are at least and at most:
# on the CPU a candidate takes long, and the order has to be right about some of them.
BUDGET_S, LEAST, MOST = 60.0, 16, 64
# So much longer counts a candidate for each that is like it and expected to be faster: the order
# knows less of what tells kinds apart than of what tells members of a kind apart.
LIKE_OTHERS = 0.007
# Rows that a part of a warp, or one warp, keeps in its registers are shorter than this; and those
# that pay the way through shared memory, if their ends are off a vector's boundary.
SHORT_COLS = 4096
CHUNKED_BYTES = 2048
# Elements of such a row for a thread: with fewer it works on little, with more a block on few rows.
CHUNK_ITEMS = range(4, 33)
# And those that registers hold without shared memory's help than this, about.
SHARED_COLS = 131072
# Of a narrow type shared memory holds what registers would hold as float.
NARROW_SHARED_COLS = 16384
# A thread's vectors where the threads of an odd row are as many as it needs.
FITTING_ITEMS = range(1, 7)
# An access of a narrow type may have so many bytes as well as the most there are.
LEAST_ACCESS_BYTES = 8

# Where latency is all that counts, instructions saved by a known row length are worth a percent.
FEW_ELEMENTS = 1 << 20
# Of fewer values a compiler takes no more registers than it needs, and is not told to.
BOUND_VALUES = 48

Axes = dict[str, tuple[Any, ...]]
_THREADS = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
_WIDE = (64, 128, 192, 256, 384, 512, 1024)
_MIN_BLOCKS = (None, *range(2, 17))
_GRID_WAVES = (1, 2, 4)
_V10 = "v10:merge=separate,update=three_pass,cache=exps_registers,items=auto,exp=exp2"


def likely_spaces(
    shapes: Iterable[Shape], overlay: Overlay = OURS, types: Types = BOTH_FLOAT32
) -> tuple[Space, ...]:
    """Return the spaces of what may be fastest on each shape (rows, cols).

    Raises UsageError for a size below 1.
    """
    typed: Axes = {axis: (element,) for axis, element in types._asdict().items()}
    return tuple(
        Space.make((variant,), (rows,), (cols,), _written(axes | typed), overlay=overlay)
        for rows, cols in shapes
        for variant, axes in _families(rows, cols, types)
    )


def _families(rows: int, cols: int, types: Types) -> Iterator[tuple[str, Axes]]:
    shifted = _read_by_vectors(cols, types)
    kept = shifted | {"min_blocks_per_sm": _MIN_BLOCKS}
    if rows * cols <= FEW_ELEMENTS:
        kept["static_cols"] = (None, cols)
    if cols <= SHORT_COLS:
        yield from _short(shifted, cols, types)
    threads = tuple(sorted({*_THREADS, *(_fitting(cols, types) if "unaligned" in shifted else ())}))
    yield "v7", {"threads_per_block": threads, **shifted}
    yield "v11", {"threads_per_block": threads, **kept}
    for blocks, clusters in REFERENCE_GPU.clusters.items():
        size: Axes = {"blocks_per_row": (blocks,), "threads_per_block": _WIDE}
        grids = tuple(blocks * clusters * waves for waves in _GRID_WAVES)
        yield "v13", size | kept
        yield "v13", size | shifted | {"row_loop": ("grid_stride",), "grid_blocks": grids}
    spread = (2, 4, 8, 16, 32, 64, 128)
    yield "v14", {"blocks_per_row": spread, "threads_per_block": _WIDE, **shifted}
    yield from _longest(cols, _widest_vec(types))
    if cols > (NARROW_SHARED_COLS if types.dtype.compute else SHARED_COLS):
        yield from _shared(types)


def _fitting(cols: int, types: Types) -> Iterator[int]:
    """Yield the fewest threads that have a whole row, of a few vectors each."""
    for items in FITTING_ITEMS:
        threads = WARP_SIZE * ceil_div(cols, WARP_SIZE * items * _widest_vec(types))
        if threads <= MAX_THREADS_PER_BLOCK:
            yield threads


def _read_by_vectors(cols: int, types: Types) -> Axes:
    """Return how rows of `cols` can be read by vectors: which ones, and shifted off a boundary."""
    narrow = min(types, key=lambda element: element.bytes)
    least = widest = _widest_vec(types)
    found: Axes = {}
    if narrow.bytes < FLOAT32.bytes:
        least, widest = LEAST_ACCESS_BYTES // narrow.bytes, narrow.vec_sizes[-1]
        found["vec_size"] = (least, widest)
    if cols % widest:
        found["unaligned"] = ("shift",) if cols % least else ("scalar_row", "shift")
    return found


def _widest_vec(types: Types) -> int:
    """Return the elements of the widest access that both types have."""
    return max(types, key=lambda element: element.bytes).vec_sizes[-1]


def _short(shifted: Axes, cols: int, types: Types) -> Iterator[tuple[str, Axes]]:
    """Rows of a part of a warp, or of one warp."""
    lanes: Axes = {
        "threads_per_row": (1, 2, 4, 8, 16, 32),
        "rows_at_once": (1, 2, 4),
        "threads_per_block": (64, 128, 256, 512),
    }
    grids = tuple(REFERENCE_GPU.multiprocessors * waves for waves in _GRID_WAVES)
    yield _V10, lanes | shifted
    yield _V10, lanes | shifted | {"row_loop": ("grid_stride",), "grid_blocks": grids}
    if cols <= WARP_SIZE * 4:
        yield f"{_V10},vec=1", lanes
    if "unaligned" in shifted and cols * types.dtype.bytes <= CHUNKED_BYTES:
        yield "v12:items=auto", _chunked(cols)


def _chunked(cols: int) -> Axes:
    """Rows through shared memory, of a part of a warp that has work for all its threads."""
    parts = (1, 2, 4, 8, 16, 32)
    return {
        "threads_per_row": tuple(of for of in parts if ceil_div(cols, of) in CHUNK_ITEMS) or (1,),
        "threads_per_block": (64, 128, 256),
        "row_io": ("chunk", "chunk_async"),
        "static_cols": (cols,),
    }


def _shared(types: Types) -> Iterator[tuple[str, Axes]]:
    """Rows that the shared memory of a block holds, or of several: what needs no more room."""
    word = "inputs_shared_async" if types.dtype.compute else "exps_shared_async"
    kept: Axes = {"cache": (word,), "threads_per_block": (256, 512, 1024)}
    yield "v11:unaligned=scalar_row", kept
    yield "v13:unaligned=scalar_row", kept | {"blocks_per_row": tuple(REFERENCE_GPU.clusters)}
    yield "v14", kept | {"blocks_per_row": (4, 8, 16, 32, 64)}


def _longest(cols: int, vec: int) -> Iterator[tuple[str, Axes]]:
    """Rows that no registers hold: read again, from the nearest cache."""
    threads: Axes = {"threads_per_block": (256, 512, 1024)}
    grids = tuple(REFERENCE_GPU.multiprocessors * waves for waves in _GRID_WAVES)
    yield from (("v6_double", threads), ("v12:cache=exps_output", threads))
    yield "v9", {**threads, "grid_blocks": grids}
    yield f"v5:vec={vec},vec_scans=both", {**threads, "cache": ("inputs_shared",)}
    yield "v11", {**threads, "unaligned": ("scalar_groups",), "cache": ("none", "exps_output")}
    split: Axes = {"blocks_per_row": (2, 4, 8, 16), "unaligned": ("scalar_groups",)}
    yield "v13", {**threads, **split, "cache": ("none", "exps_output")}
    yield f"t1:vec={vec}", {**threads, "tile_size": (4096, 16384, 65536)}


def _written(axes: Axes) -> dict[str, tuple[str, ...]]:
    return {name: tuple("auto" if of is None else str(of) for of in axes[name]) for name in axes}


def likeliest(planned: Plan, seconds: Callable[[Point], float]) -> Plan:
    """Return the plan with those of each shape's points that the model expects to be fastest.

    They are in that order, LEAST to MOST of them, and between these as many as take BUDGET_S by
    `seconds`, which is what measuring a point takes.
    """
    by_shape: dict[Shape, list[Point]] = defaultdict(list)
    for point in planned.points:
        by_shape[point.rows, point.cols].append(point)
    kept = [
        replace(point, named=frozenset())
        for points in by_shape.values()
        for point in ranked(points)[: _number(max(map(seconds, points)))]
    ]
    return replace(planned, points=kept, unlikely=len(planned.points) - len(kept))


def _number(seconds: float) -> int:
    return int(max(LEAST, min(MOST, BUDGET_S / seconds)))


def ranked(points: Iterable[Point]) -> list[Point]:
    """Return the points of a shape whose axes make sense together, as fast ones as expected first.

    Those that are much alike do not fill the first places.
    """
    costs = {point: foretold_us(point) for point in filter(_is_sensible, points)}
    alike: Counter[object] = Counter()
    order: dict[Point, float] = {}
    for point, us in sorted(costs.items(), key=lambda entry: entry[1]):
        order[point] = us * (1 + LIKE_OTHERS * alike[_kind(point.spec)])
        alike[_kind(point.spec)] += 1
    return sorted(order, key=lambda point: order[point])


def _kind(spec: Spec) -> object:
    """Return what kernels have in common that are much alike."""
    return (
        spec.version,
        spec.row_split,
        spec.row_width // spec.threads_per_block,
        spec.cache.place,
        spec.cache.keeps_exps,
        spec.row_loop,
        spec.next_row,
        spec.threads_per_row,
        spec.rows_at_once,
    )


def _is_sensible(point: Point) -> bool:
    """Whether a loop over rows has rows to go on to, and a bound on registers is the tightest."""
    spec = point.resolved
    tasks = int(spec.row_split.tasks.of(spec, rows=point.rows, cols=point.cols))
    if spec.row_loop.repeats and spec.grid_for(point.rows, point.cols) >= tasks:
        return False
    bound = spec.min_blocks_per_sm
    if bound is None:
        return True
    tighter = spec.replace(min_blocks_per_sm=bound + 1)
    return spec.values_kept >= BOUND_VALUES and value_limit(tighter) < spec.slots
