"""Reads a user's array from a .npy file, which may be a pipe and may hold anything."""

from __future__ import annotations

from pathlib import Path
from tokenize import TokenError
from types import SimpleNamespace
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kgen.errors import UsageError

_ARCHIVE = b"PK"
_MAX_REASON = 160


def load(path: Path) -> NDArray[np.float32]:
    """Return the float32 array that `numpy.save` wrote to `path`, a pipe included.

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
    if loaded.dtype != np.float32:
        raise UsageError(
            f"{path} holds {loaded.dtype}; save it as float32: x.astype(numpy.float32)"
        )
    return loaded


def _array(file: IO[bytes]) -> NDArray[Any]:
    # Of a file, NumPy would read the data by position, which a pipe has not; of what can only be
    # read from, it reads them in turn.
    in_turn: Any = SimpleNamespace(read=file.read)
    array: NDArray[Any] = np.lib.format.read_array(in_turn)
    return array
