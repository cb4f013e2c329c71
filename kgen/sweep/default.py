"""What a sweep tries on a shape when nobody names anything: the named versions, and of the fast
ones those that give a thread a sensible part of the row.

A thread that keeps 1 to 25 vectors in registers has enough loads on their way and does not spill;
so a row's length alone leaves a few dozen of the many thousand combinations.
"""

from __future__ import annotations

from collections.abc import Iterator

from kgen.shape import Shape
from kgen.specs.formula import ceil_div
from kgen.specs.rules import problems_for
from kgen.specs.variants import checked
from kgen.specs.versions import VERSIONS

VEC_SIZE = 4
# Registers of an SM over those that a thread with a full register cache needs.
THREADS_PER_SM = 512
# The most elements of a chunk of which an SM holds a few.
CHUNK_ELEMENTS = 12288
# Rows of this length and more are shared by blocks.
LONG_ROW = 4096


def default_variants(shape: Shape) -> tuple[str, ...]:
    """Return the variants for a shape: every named version, then what is worth trying beside."""
    found = (*VERSIONS, *_short_rows(shape), *_chunk_rows(shape), *_block_rows(shape))
    found = (*found, *_cluster_rows(shape), *_grid_rows(shape))
    fitting = [one for one in found if one in VERSIONS or not problems_for(checked(one), *shape)]
    return tuple(dict.fromkeys(fitting))


def _read_as(cols: int) -> str:
    """Return how rows are read at full width: with an odd length few start on a boundary."""
    return "unaligned=scalar_row" if cols % VEC_SIZE == 0 else "unaligned=shift"


def _vectors(cols: int, threads: int) -> int:
    """Return the vectors of a thread where so many share a row."""
    spare = 0 if cols % VEC_SIZE == 0 else VEC_SIZE - 1
    return ceil_div(ceil_div(cols + spare, VEC_SIZE), threads)


def _short_rows(shape: Shape) -> Iterator[str]:
    """Yield kernels whose rows have one to all lanes of a warp."""
    _, cols = shape
    for lanes in (1, 2, 4, 8, 16, 32):
        if _vectors(cols, lanes) <= 8 and lanes <= 2 * ceil_div(cols, VEC_SIZE):
            for threads in (128, 256):
                yield (
                    f"v10:threads_per_row={lanes},merge=separate,update=three_pass,"
                    f"cache=exps_registers,{_read_as(cols)},items=auto,threads={threads},exp=exp2"
                )


def _chunk_rows(shape: Shape) -> Iterator[str]:
    """Yield kernels that copy the rows of a block as one chunk, where few start on a boundary."""
    _, cols = shape
    for lanes in (1, 4, 8, 16, 32) if cols % VEC_SIZE else ():
        for threads in (128, 256):
            chunk = threads // lanes * cols
            if 2 * lanes <= cols <= 32 * lanes and chunk <= CHUNK_ELEMENTS:
                for way in ("chunk", "chunk_bulk"):
                    yield (
                        f"v12:row_io={way},threads_per_row={lanes},threads={threads},"
                        f"cache=exps_registers,static_cols={cols}"
                    )


def _block_rows(shape: Shape) -> Iterator[str]:
    """Yield kernels whose rows have a block."""
    _, cols = shape
    for threads in (64, 128, 256, 512, 1024):
        if cols >= threads and _vectors(cols, threads) <= 16:
            yield f"v11:{_read_as(cols)},threads={threads}"


def _cluster_rows(shape: Shape) -> Iterator[str]:
    """Yield kernels whose rows have a cluster."""
    rows, cols = shape
    least, most = (2, 16) if rows < 64 else (4, 32)
    for blocks in (2, 4, 8, 16) if cols >= LONG_ROW else ():
        for threads in (64, 128, 192, 256, 512):
            if least <= _vectors(cols, blocks * threads) <= most:
                bound = f",min_blocks={THREADS_PER_SM // threads}" if cols % VEC_SIZE else ""
                yield f"v13:blocks_per_row={blocks},{_read_as(cols)},threads={threads}{bound}"


def _grid_rows(shape: Shape) -> Iterator[str]:
    """Yield kernels whose rows have many blocks of the grid."""
    _, cols = shape
    for blocks in (16, 32, 64, 128) if cols >= 4 * LONG_ROW else ():
        for threads in (256, 512, 1024):
            if _vectors(cols, blocks * threads) <= 8:
                yield f"v14:blocks_per_row={blocks},{_read_as(cols)},threads={threads}"
