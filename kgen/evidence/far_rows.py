"""Rows so far into a matrix that the offset of their elements does not fit 32 bits."""

from __future__ import annotations

from kgen.specs.formula import ceil_div
from kgen.specs.rules import problems_for
from kgen.specs.spec import Spec

# Offsets past these need more bits than an int or an unsigned has, the one in bytes even when it
# counts 16 of them; wrapped, both are near 0, and no memory is there.
_BYTES, _ELEMENTS = 2**36, 2**32
# Rows to look at: with odd cols, one on each place of a vector.
_LEAST_ROWS = 4
# Longer rows prove nothing that these do not, and cost time.
_MAX_COLS = 1025


def far_shape(spec: Spec, lengths: list[int]) -> tuple[int, int] | None:
    """Return rows and cols (one of `lengths`) of a matrix whose last rows lie that far.

    None for a spec that runs on no such matrix. Host versions are left out as well: they walk all
    rows in one call, which takes minutes.
    """
    if spec.is_host:
        return None
    best_first = sorted(lengths, key=lambda cols: (cols <= _MAX_COLS, cols % 2, cols), reverse=True)
    shapes = (
        (_whole_blocks(spec, ceil_div(elements, cols)) + far_rows(spec), cols)
        for elements in (_BYTES // spec.wide.bytes, _ELEMENTS)
        for cols in best_first
    )
    return next((shape for shape in shapes if not problems_for(spec, *shape)), None)


def far_rows(spec: Spec) -> int:
    """Return how many last rows to run: whole blocks, and a block with a single row."""
    return _whole_blocks(spec, _LEAST_ROWS) + 1


def _whole_blocks(spec: Spec, least: int) -> int:
    return ceil_div(least, spec.rows_per_block) * spec.rows_per_block
