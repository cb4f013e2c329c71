"""CuPy: cupyx.scipy.special.softmax, four or more kernels with arrays between them."""

from __future__ import annotations

from collections.abc import Callable

import cupy
from cupyx.scipy.special import softmax

from kgen.timing.peers import DeviceMatrix

from ._types import require_one_type, require_types

PACKAGE = "cupy-cuda13x"


def bind(x: DeviceMatrix, y: DeviceMatrix, stream: int) -> Callable[[], object]:
    """Return what issues the softmax of `x` on the stream, into an array of its own.

    Raises UsageError for bfloat16, and for an output of another type.
    """
    require_types("CuPy", ("float32", "float16", "float64"), x, y)
    require_one_type("its softmax", x, y)
    source = cupy.asarray(x)
    external = cupy.cuda.ExternalStream(stream)

    def issue() -> object:
        with external:
            return softmax(source, axis=1)

    issue()
    external.synchronize()
    return issue
