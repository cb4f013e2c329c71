"""What the peers on top of PyTorch share: tensors over the matrices, work on the given stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from kgen.timing.peers import DeviceMatrix

Softmax = Callable[[torch.Tensor, torch.Tensor], torch.Tensor | None]


class Bits:
    """A matrix's elements as whole numbers, since CUDA's array interface has no bfloat16."""

    def __init__(self, matrix: DeviceMatrix) -> None:
        interface = matrix.__cuda_array_interface__
        self.__cuda_array_interface__: dict[str, Any] = {
            **interface,
            "typestr": f"<i{interface['typestr'][2:]}",
        }


def tensor_over(matrix: DeviceMatrix) -> torch.Tensor:
    """Return a tensor over a matrix, of its type."""
    bits = torch.as_tensor(Bits(matrix), device="cuda")
    return bits.view(getattr(torch, str(matrix.dtype)))


def on_stream(
    softmax: Softmax, x: DeviceMatrix, y: DeviceMatrix, stream: int
) -> Callable[[], object]:
    """Return what issues `softmax(x, y)` on the stream, after a first call of it has finished.

    `softmax` gets tensors over x and y. It fills the second one and returns None, or it returns a
    tensor of its own.
    """
    source, target = tensor_over(x), tensor_over(y)
    external = torch.cuda.ExternalStream(stream)

    def issue() -> object:
        with torch.cuda.stream(external):
            own = softmax(source, target)
        return y if own is None else own

    issue()
    external.synchronize()
    return issue
