"""PyTorch, eager: torch.softmax into a given output."""

from __future__ import annotations

from collections.abc import Callable

import torch

from kgen.timing.peers import DeviceMatrix

from ._torch import on_stream

PACKAGE = "torch"


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    """Fill `y`, by the wider of both types."""
    wide = torch.promote_types(x.dtype, y.dtype)
    if y.dtype == wide:
        torch.softmax(x, -1, dtype=wide, out=y)
    else:
        y.copy_(torch.softmax(x, -1, dtype=wide))


def bind(x: DeviceMatrix, y: DeviceMatrix, stream: int) -> Callable[[], object]:
    """Return what issues the softmax of `x` on the stream."""
    return on_stream(softmax, x, y, stream)
