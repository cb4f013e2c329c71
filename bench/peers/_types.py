"""What peers take: matrices of types that they know, and of one type where they cannot convert."""

from __future__ import annotations

from collections.abc import Collection

from kgen.errors import UsageError
from kgen.timing.peers import DeviceMatrix

NARROW = ("float32", "float16", "bfloat16")


def require_types(who: str, known: Collection[str], *matrices: DeviceMatrix) -> None:
    """Raise UsageError for a matrix of a type that `who` does not know."""
    for matrix in matrices:
        if str(matrix.dtype) not in known:
            raise UsageError(f"{who} takes {', '.join(known)}, and not {matrix.dtype}")


def require_one_type(who: str, x: DeviceMatrix, y: DeviceMatrix) -> str:
    """Return the type of both. Raises UsageError where `who` would have to convert."""
    if str(x.dtype) != str(y.dtype):
        raise UsageError(f"{who} writes the type that it reads, and not {y.dtype} of {x.dtype}")
    return str(x.dtype)
