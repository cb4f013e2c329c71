"""Triton, the 1-D study's three kernels: maximum, sum of exponentials, normalise; 3 reads.

Blocks of 1024 elements meet in a maximum and a sum a row in global memory, by atomic operations.
"""

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

BLOCK = 1024


@triton.jit
def load_block(x, cols, BLOCK: tl.constexpr):
    """Return the program's row, the offsets of its elements, which of them exist, their values.

    Programs are numbered through the blocks of a row and then the rows: a second dimension of the
    grid would end at 65535 rows.
    """
    blocks = tl.cdiv(cols, BLOCK)
    row = tl.program_id(0) // blocks
    columns = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    offsets = row.to(tl.int64) * cols + columns
    values = tl.load(x + offsets, mask=columns < cols, other=-float("inf"))
    return row, offsets, columns < cols, values.to(tl.float32)


@triton.jit
def find_max(x, maxima, cols, BLOCK: tl.constexpr):
    """Take the block into the row's maximum; Triton's atomic maximum orders floats of any sign."""
    row, _, _, values = load_block(x, cols, BLOCK)
    tl.atomic_max(maxima + row, tl.max(values, axis=0))


@triton.jit
def add_exps(x, maxima, sums, cols, BLOCK: tl.constexpr):
    """Take the block into the row's sum."""
    row, _, _, values = load_block(x, cols, BLOCK)
    tl.atomic_add(sums + row, tl.sum(tl.exp(values - tl.load(maxima + row)), axis=0))


@triton.jit
def normalise(x, y, maxima, sums, cols, BLOCK: tl.constexpr):
    """Write the block."""
    row, offsets, exist, values = load_block(x, cols, BLOCK)
    exps = tl.exp(values - tl.load(maxima + row))
    tl.store(y + offsets, exps / tl.load(sums + row), mask=exist)


def softmax(x: torch.Tensor, y: torch.Tensor, fresh: torch.Tensor, used: torch.Tensor) -> None:
    """Fill `y`; `used` holds the maxima and sums of the rows, and starts as a copy of `fresh`."""
    rows, cols = x.shape
    used.copy_(fresh)
    maxima, sums = used
    grid = (rows * triton.cdiv(cols, BLOCK),)
    find_max[grid](x, maxima, cols, BLOCK=BLOCK)
    add_exps[grid](x, maxima, sums, cols, BLOCK=BLOCK)
    normalise[grid](x, y, maxima, sums, cols, BLOCK=BLOCK)


def bind(x: DeviceMatrix, y: DeviceMatrix, stream: int) -> Callable[[], object]:
    """Return what issues the softmax of `x` on the stream. Raises UsageError for float64."""
    require_types("this kernel", NARROW, x, y)
    host = torch.zeros(2, x.shape[0])
    host[0] = -float("inf")
    fresh = host.to("cuda")
    used = torch.empty_like(fresh)
    return on_stream(lambda source, target: softmax(source, target, fresh, used), x, y, stream)
