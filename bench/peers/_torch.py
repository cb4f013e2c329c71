"""What the peers on top of PyTorch share: tensors over the matrices, work on the given stream."""

from __future__ import annotations

from collections.abc import Callable

import torch

from kgen.timing.peers import DeviceMatrix

Softmax = Callable[[torch.Tensor, torch.Tensor], torch.Tensor | None]


def on_stream(
    softmax: Softmax, x: DeviceMatrix, y: DeviceMatrix, stream: int
) -> Callable[[], object]:
    """Return what issues `softmax(x, y)` on the stream, after a first call of it has finished.

    `softmax` gets tensors over x and y. It fills the second one and returns None, or it returns a
    tensor of its own.
    """
    source, target = torch.as_tensor(x, device="cuda"), torch.as_tensor(y, device="cuda")
    external = torch.cuda.ExternalStream(stream)

    def issue() -> object:
        with torch.cuda.stream(external):
            own = softmax(source, target)
        return y if own is None else own

    issue()
    external.synchronize()
    return issue
