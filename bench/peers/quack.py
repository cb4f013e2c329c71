"""QuACK: softmax in CuTe DSL, rows in registers, long ones over a cluster of blocks."""

from __future__ import annotations

from collections.abc import Callable

import torch
from quack.softmax import _softmax_fwd

from kgen.errors import UsageError
from kgen.timing.peers import DeviceMatrix

from ._torch import on_stream
from ._types import NARROW, require_one_type, require_types

PACKAGE = "quack-kernels"

VEC_BYTES = 16
MAX_CLUSTER = 16


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    """Fill `y`; QuACK's public function would allocate an output in every call."""
    _softmax_fwd(x, y)


def bind(x: DeviceMatrix, y: DeviceMatrix, stream: int) -> Callable[[], object]:
    """Return what issues the softmax of `x` on the stream.

    Raises UsageError for rows that are not whole vectors, or longer than a cluster's shared memory,
    for float64, and for an output of another type.
    """
    require_types("QuACK", NARROW, x, y)
    element_bytes = getattr(torch, require_one_type("QuACK", x, y)).itemsize
    cols, vec_size = x.shape[1], VEC_BYTES // element_bytes
    if cols % vec_size:
        raise UsageError(f"QuACK takes rows of whole vectors of {vec_size}, and these have {cols}")
    shared = torch.cuda.get_device_properties().shared_memory_per_block_optin
    if cols * element_bytes >= MAX_CLUSTER * shared:
        raise UsageError(
            f"QuACK keeps a row in the shared memory of {MAX_CLUSTER} blocks, {shared} bytes each, "
            f"and {cols} columns do not fit"
        )
    return on_stream(softmax, x, y, stream)
