"""Triton, the 1-D study's online softmax: a program a row, tiles of 1024, a second scan writes."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl

from kgen.timing.peers import DeviceMatrix

from ._torch import on_stream
from ._types import NARROW, require_types

PACKAGE = "triton"

TILE = 1024


@triton.jit
def online(x, y, cols, TILE: tl.constexpr):
    """Write one row: first its maximum and sum tile by tile, then its elements."""
    start = tl.program_id(0).to(tl.int64) * cols
    # Not -inf: a tile of nothing else would then rescale by exp((-inf) - (-inf)). And no more than
    # -FLT_MAX: a row of nothing larger must not sum to zero.
    row_max = -3.4028234663852886e38
    row_sum = 0.0
    for first in range(0, cols, TILE):
        columns = first + tl.arange(0, TILE)
        values = tl.load(x + start + columns, mask=columns < cols, other=-float("inf"))
        values = values.to(tl.float32)
        new_max = tl.maximum(row_max, tl.max(values, axis=0))
        row_sum = row_sum * tl.exp(row_max - new_max) + tl.sum(tl.exp(values - new_max), axis=0)
        row_max = new_max
    for first in range(0, cols, TILE):
        columns = first + tl.arange(0, TILE)
        values = tl.load(x + start + columns, mask=columns < cols, other=-float("inf"))
        values = values.to(tl.float32)
        tl.store(y + start + columns, tl.exp(values - row_max) / row_sum, mask=columns < cols)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    """Fill `y`."""
    rows, cols = x.shape
    online[(rows,)](x, y, cols, TILE=TILE, num_warps=4)


def bind(x: DeviceMatrix, y: DeviceMatrix, stream: int) -> Callable[[], object]:
    """Return what issues the softmax of `x` on the stream. Raises UsageError for float64."""
    require_types("this kernel", NARROW, x, y)
    return on_stream(softmax, x, y, stream)
