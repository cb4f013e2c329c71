"""Liger-Kernel: its Triton kernels for softmax, a block a row; up to 65536 columns."""

from __future__ import annotations

from collections.abc import Callable

import torch
from liger_kernel.ops.softmax import _softmax_single_block_forward_kernel as kernel
from liger_kernel.ops.utils import calculate_settings

from kgen.errors import UsageError
from kgen.timing.peers import DeviceMatrix

from ._torch import on_stream

PACKAGE = "liger-kernel"

# Its own limit of a row that one block holds.
MAX_COLS = 65536


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    """Fill `y`, with Liger's settings; its own function would allocate an output in every call."""
    rows, cols = x.shape
    block, warps = calculate_settings(cols)
    kernel[(rows,)](y, y.stride(0), x, x.stride(0), cols, BLOCK_SIZE=block, num_warps=warps)


def bind(x: DeviceMatrix, y: DeviceMatrix, stream: int) -> Callable[[], object]:
    """Return what issues the softmax of `x` on the stream. Raises UsageError for long rows."""
    if x.shape[1] > MAX_COLS:
        raise UsageError(
            f"Liger takes rows of up to {MAX_COLS} columns, and these have {x.shape[1]}"
        )
    return on_stream(softmax, x, y, stream)
