"""QuACK: softmax in CuTe DSL, rows in registers, long ones over a cluster of blocks."""

from __future__ import annotations

from collections.abc import Callable

import torch
from quack.softmax import _softmax_fwd

from kgen.errors import UsageError
from kgen.timing.peers import DeviceMatrix

from ._torch import on_stream

PACKAGE = "quack-kernels"

VEC_SIZE = 4
MAX_CLUSTER = 16


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    """Fill `y`; QuACK's public function would allocate an output in every call."""
    _softmax_fwd(x, y)


def bind(x: DeviceMatrix, y: DeviceMatrix, stream: int) -> Callable[[], object]:
    """Return what issues the softmax of `x` on the stream.

    Raises UsageError for rows that are not whole vectors, or longer than a cluster's shared memory.
    """
    cols = x.shape[1]
    if cols % VEC_SIZE:
        raise UsageError(f"QuACK takes rows of whole vectors of {VEC_SIZE}, and these have {cols}")
    shared = torch.cuda.get_device_properties().shared_memory_per_block_optin
    if cols * 4 >= MAX_CLUSTER * shared:
        raise UsageError(
            f"QuACK keeps a row in the shared memory of {MAX_CLUSTER} blocks, {shared} bytes each, "
            f"and {cols} columns do not fit"
        )
    return on_stream(softmax, x, y, stream)
