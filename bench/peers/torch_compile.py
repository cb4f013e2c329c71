"""PyTorch, compiled: torch.compile of torch.softmax in its default mode, for each shape anew."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from collections.abc import Callable

import torch
import torch._dynamo

from kgen.timing.peers import DeviceMatrix

from ._torch import on_stream

PACKAGE = "torch"

# Past their defaults of 8 and 256 shapes, compiling would end.
torch._dynamo.config.recompile_limit = 100_000
torch._dynamo.config.accumulated_recompile_limit = 100_000


# With fullgraph what cannot be compiled raises, rather than run as in the eager peer.
@torch.compile(dynamic=False, fullgraph=True)
def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    """Fill `y`; the copy becomes part of the kernel that normalises."""
    y.copy_(torch.softmax(x, -1, dtype=torch.promote_types(x.dtype, y.dtype)))


def bind(x: DeviceMatrix, y: DeviceMatrix, stream: int) -> Callable[[], object]:
    """Return what issues the softmax of `x` on the stream."""
    return on_stream(softmax, x, y, stream)
