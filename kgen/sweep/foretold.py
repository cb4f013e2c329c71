"""What a kernel will do and take, foretold from its spec alone, before anything is compiled.

The counts are those that a run under observation makes, about; registers those that ptxas reports,
about. The cost model makes a time of them.
"""

from __future__ import annotations

import math

from kgen.launch import plan_valid
from kgen.limits import REGISTERS_PER_SM, WARP_SIZE
from kgen.sources.kernels import kernels
from kgen.specs.choice import MAX_ACCESS_BYTES, Element
from kgen.specs.formula import ceil_div
from kgen.specs.rules.caches import REGISTER_BYTES
from kgen.specs.rules.shapes import static_shared_bytes
from kgen.specs.spec import Spec
from kgen.sweep.model import SECTOR_BYTES, work_us
from kgen.sweep.model_gpu import REFERENCE_GPU, ModelGpu
from kgen.sweep.point import Point
from kgen.toolchain.binary import KernelResources

# The least that a kernel takes, and what one takes whose values are not in registers.
LEAST_REGISTERS = 32
# What it takes beside the values that it keeps, as ptxas reports of v13.
OTHER_REGISTERS = 15
# And for each further row at once: where it goes and how long it is.
ROW_REGISTERS = 5
# ptxas hands them out to warps in units of so many a thread.
REGISTER_STEP = 8


def foretold_us(point: Point, gpu: ModelGpu = REFERENCE_GPU) -> float:
    """Return about how many microseconds a point takes on `gpu` with a cold L2 cache."""
    spec = point.resolved
    symbols = [kernel.suffix for kernel in kernels(spec)]
    plan = plan_valid(spec, symbols, point.rows, point.cols)
    taken = (registers(spec), 0, 0, 0, static_shared_bytes(spec))
    resources = [KernelResources(symbol, *taken) for symbol in symbols]
    return work_us(spec, counts(spec, point.rows, point.cols), plan, resources, gpu)


def registers(spec: Spec) -> int:
    """Return about how many registers a thread of a resolved spec takes."""
    values = spec.values_kept if spec.in_registers else spec.tile_slots if spec.is_tiled else 0
    kept = values * spec.compute_bytes // REGISTER_BYTES
    others = OTHER_REGISTERS + ROW_REGISTERS * (spec.rows_at_once - 1)
    wanted = max(LEAST_REGISTERS, kept + others)
    resident = spec.threads_per_block * (spec.min_blocks_per_sm or 1)
    share = min(255, REGISTERS_PER_SM // resident // REGISTER_STEP * REGISTER_STEP)
    return min(share, ceil_div(wanted, REGISTER_STEP) * REGISTER_STEP)


def counts(spec: Spec, rows: int, cols: int) -> dict[str, float]:
    """Return about what all warps of a resolved spec do on rows x cols, by the names of COUNTS."""
    first, last = (
        _accesses(spec, cols, is_vector) for is_vector in (spec.vec_first, spec.vec_second)
    )
    reading = 1 if spec.in_registers or spec.in_shared else spec.scans
    kept = _shared_accesses(spec, first) + last if spec.in_shared else _waiting(spec, cols, first)
    shuffles, shared, barriers, merges = _meeting(spec)
    elements = _elements(spec, cols)
    row_warps = rows * spec.row_width / WARP_SIZE
    per_row_warp = {
        "global_loads": _pieces(spec, spec.dtype)
        * (first * (reading - 1) + (first if reading == 1 else last)),
        "global_stores": _pieces(spec, spec.out_dtype) * (last + (first if spec.parks else 0.0))
        + _edges(spec, cols),
        "shared_accesses": kept + shared,
        "exponentials": elements * _exponentials(spec) + merges,
        "shuffles": shuffles,
        "barriers": barriers + (spec.cache.is_bulk or spec.next_row.is_bulk),
    }
    done = {name: row_warps * count for name, count in per_row_warp.items()}
    of_x = (reading - spec.parks) * _sectors(spec, cols, spec.dtype)
    of_y = (1 + 2 * spec.parks) * _sectors(spec, cols, spec.out_dtype)
    return done | {"global_sectors": rows * (of_x + of_y)}


def _waiting(spec: Spec, cols: int, walk: float) -> float:
    """Return a warp's accesses to what waits in shared memory for registers."""
    if not (spec.waits_in_shared and _is_aligned(spec, cols)):
        return 0.0
    return walk * (2 if spec.next_row.is_bulk else 1)  # which also counts what comes there


def _shared_accesses(spec: Spec, walk: float) -> float:
    """Return a warp's accesses of the row in shared memory before it is written, walk by walk."""
    return walk * (1 + (not spec.is_online) + spec.keeps_exps + spec.cache.is_bulk)


def _pieces(spec: Spec, element: Element) -> int:
    """Return the accesses that a vector of such elements takes."""
    return ceil_div(spec.vec_size * element.bytes, MAX_ACCESS_BYTES)


def _edges(spec: Spec, cols: int) -> float:
    """Return a warp's stores of single elements, beside the vectors that are whole."""
    if not (spec.unaligned.is_shifted and cols % spec.vec_size):
        return 0.0
    return (spec.vec_size - 1) / max(1, spec.row_width // WARP_SIZE)


def _is_aligned(spec: Spec, cols: int) -> bool:
    """Whether all rows, or all but one in a few, are read by vectors."""
    return cols % spec.vec_size == 0 or spec.unaligned.is_shifted


def _sectors(spec: Spec, cols: int, element: Element) -> float:
    """Return the sectors that a walk over a row of such elements asks for.

    Rows of no multiple of a sector's elements share sectors with their neighbours.
    """
    whole = SECTOR_BYTES // element.bytes
    sectors = cols / whole
    if spec.in_chunks:
        return sectors
    narrow = whole / min(whole, spec.row_width * spec.vec_size)
    if not cols % whole or spec.unaligned.is_shifted:
        return sectors * narrow
    by_elements = not (spec.unaligned.whole_row or _is_aligned(spec, cols))
    return sectors * max(narrow, 1.25 * (spec.vec_size if by_elements else 1))


def _accesses(spec: Spec, cols: int, is_vector: bool) -> float:
    """Return a warp's accesses for a walk over its row, those of no lane not among them."""
    is_scalar = not is_vector or not _is_aligned(spec, cols)
    by_groups = is_vector and is_scalar and not spec.unaligned.whole_row
    size = spec.vec_size if (is_vector and not is_scalar) or by_groups else 1
    lanes = min(spec.row_width, WARP_SIZE)
    walked = ceil_div(cols, lanes * size) * lanes / spec.row_width
    return walked * (spec.vec_size if by_groups else 1)


def _elements(spec: Spec, cols: int) -> float:
    """Return the elements that a thread computes, masked ones among them."""
    if spec.in_registers:
        return spec.slots
    lanes = min(spec.row_width, WARP_SIZE)
    return ceil_div(cols, lanes) * lanes / spec.row_width


def _exponentials(spec: Spec) -> int:
    """Return the exponentials an element takes."""
    summing = 2 if spec.is_online and not spec.update.misses_inf else 1
    return summing + (not spec.keeps_exps and spec.op.keeps_exps)


def _meeting(spec: Spec) -> tuple[float, float, float, float]:
    """Return a warp's shuffles, shared accesses, barriers and exponentials where results meet."""
    warps = spec.row_width // WARP_SIZE
    lanes = min(spec.row_threads, WARP_SIZE)
    levels = 2 * math.log2(lanes)
    merging = math.log2(lanes) * (spec.merge.is_paired and not spec.merge.by_warp)
    if warps <= 1:
        return levels, 0.0, 0.0, merging
    steps = 1.0 if spec.merge.is_paired else 2.0
    if spec.runs_at_once:  # a block's warps first, then the blocks
        found = ceil_div(spec.blocks_per_row, WARP_SIZE)
        return levels + 2 * 8, 4.25, 2.0, 2.0 + 2 * found
    if spec.topology.of_warps:
        found = ceil_div(warps, WARP_SIZE)  # of the warps' results, for each lane
        return levels + 2 * math.log2(WARP_SIZE), 1.0 + 2 * found, 1.0, 1.0 + found
    if int(spec.topology.shared_values.of(spec)) == spec.threads_per_block:  # one a thread: a tree
        deep = math.log2(max(2, spec.row_threads))
        return 0.0, 6.5 * steps, (deep + 2) * steps, merging
    second = 2 * math.log2(warps) / warps  # of the first warp alone
    return levels + second, 2.25 * steps, 3 * steps, 2 * merging
