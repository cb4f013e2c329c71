"""Reads a user's array from a .npy file, which may be a pipe and may hold anything."""

from __future__ import annotations

from pathlib import Path
from tokenize import TokenError
from types import SimpleNamespace
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kgen.errors import UsageError
from kgen.numpy_types import numpy_dtype
from kgen.specs.choice import Element
from kgen.specs.declared import FLOAT32, choices

_ARCHIVE = b"PK"
_MAX_REASON = 160


# What NumPy makes of a type that it lacks, and what people keep its bits as.
_BITS = ("V2", "uint16")


def load(path: Path, element: Element = FLOAT32) -> NDArray[Any]:
    """Return the array of elements that `numpy.save` wrote to `path`, a pipe included.

    A file cannot say that it holds bfloat16: where that is wanted, two bytes are taken for it.
    Raises UsageError when there is no such array.
    """
    try:
        with path.open("rb") as file:
            if file.peek(len(_ARCHIVE)).startswith(_ARCHIVE):
                raise UsageError(f"{path} is an archive; give one array saved by numpy.save")
            loaded = _array(file)
    # NumPy lets out what its tokenizer, memory and arithmetic say of a header.
    except (OSError, ValueError, TypeError, ArithmeticError, MemoryError, TokenError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise UsageError(
            f"{path} cannot be read as a .npy array: {reason[:_MAX_REASON] or 'it is none'}"
        ) from None
    wanted = numpy_dtype(element)
    if wanted.kind == "V" and loaded.dtype in map(np.dtype, _BITS):
        return loaded.view(wanted)
    if loaded.dtype != wanted:
        raise UsageError(
            f"{path} holds {loaded.dtype}, and the kernel takes {wanted}; {_way(loaded, wanted)}"
        )
    return loaded


def _way(loaded: NDArray[Any], wanted: np.dtype[Any]) -> str:
    """Return what to do with a file of another type."""
    if str(loaded.dtype) in choices("dtype"):
        return f"use dtype={loaded.dtype}, or save it as {wanted}: x.astype({str(wanted)!r})"
    if loaded.dtype == np.dtype("V2"):
        return "if these are bfloat16, use dtype=bfloat16"
    return f"save it as {wanted}: x.astype({str(wanted)!r})"


def _array(file: IO[bytes]) -> NDArray[Any]:
    # Of a file, NumPy would read the data by position, which a pipe has not; of what can only be
    # read from, it reads them in turn.
    in_turn: Any = SimpleNamespace(read=file.read)
    array: NDArray[Any] = np.lib.format.read_array(in_turn)
    return array
