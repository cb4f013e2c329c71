"""cuDNN: cudnnSoftmaxForward, accurate, in instance mode."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Callable
from ctypes import byref, c_double, c_float, c_void_p
from pathlib import Path

from kgen.errors import UsageError
from kgen.timing.peers import DeviceMatrix

from ._types import require_one_type

PACKAGE = "nvidia-cudnn-cu13"

LIBRARY = "libcudnn.so.9"
# Values of cuDNN's enumerations.
TENSOR_NCHW = 0
DATA_TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 9}
SOFTMAX_ACCURATE, SOFTMAX_MODE_INSTANCE = 1, 0
NOT_SUPPORTED = range(3000, 4000)


@functools.cache
def library() -> ctypes.CDLL:
    """Return cuDNN from NVIDIA's wheel. Raises ImportError when that is not installed."""
    found = importlib.util.find_spec("nvidia.cudnn")
    for folder in (found and found.submodule_search_locations) or ():
        path = Path(folder) / "lib" / LIBRARY
        if path.is_file():
            loaded = ctypes.CDLL(str(path))
            loaded.cudnnGetErrorString.restype = ctypes.c_char_p
            return loaded
    raise ImportError(f"no {LIBRARY} in a package nvidia.cudnn")


def call(function: str, *arguments: object) -> None:
    """Call a function of cuDNN; raise UsageError where it does not support what it is asked."""
    status = getattr(library(), function)(*arguments)
    if status:
        told = f"{function} returned {library().cudnnGetErrorString(status).decode()}"
        raise UsageError(told) if status in NOT_SUPPORTED else RuntimeError(told)


@functools.cache
def handle(stream: int) -> c_void_p:
    """Return a handle of cuDNN that issues to the stream."""
    made = c_void_p()
    call("cudnnCreate", byref(made))
    call("cudnnSetStream", made, c_void_p(stream))
    return made


@functools.cache
def descriptor(rows: int, cols: int, dtype: str) -> c_void_p:
    """Return the descriptor of a matrix: a row is an instance with its elements as channels."""
    made = c_void_p()
    call("cudnnCreateTensorDescriptor", byref(made))
    call("cudnnSetTensor4dDescriptor", made, TENSOR_NCHW, DATA_TYPES[dtype], rows, cols, 1, 1)
    return made


def bind(x: DeviceMatrix, y: DeviceMatrix, stream: int) -> Callable[[], object]:
    """Return what issues the softmax of `x` on the stream.

    Raises UsageError past 2^31 elements, and for an output of another type.
    """
    dtype = require_one_type("cuDNN", x, y)
    context, shape = handle(stream), descriptor(*x.shape, dtype)
    source, target = (c_void_p(matrix.__cuda_array_interface__["data"][0]) for matrix in (x, y))
    scale = c_double if dtype == "float64" else c_float
    one, zero = scale(1), scale(0)
    how = (SOFTMAX_ACCURATE, SOFTMAX_MODE_INSTANCE)

    def issue() -> object:
        call(
            "cudnnSoftmaxForward",
            *(context, *how, byref(one), shape, source, byref(zero), shape, target),
        )
        return y

    issue()
    return issue
