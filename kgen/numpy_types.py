"""NumPy's types of a matrix's elements."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from kgen.specs.choice import Element
from kgen.specs.declared import chosen

# NumPy itself has no bfloat16.
_OTHERS = {"bfloat16": np.dtype(ml_dtypes.bfloat16)}


def numpy_dtype(element: str) -> np.dtype[Any]:
    """Return NumPy's type of an element such as `float16`, by its name in a spec."""
    return _OTHERS.get(element) or np.dtype(element)


def element_of(x: NDArray[Any]) -> Element:
    """Return the element that a matrix is of. Raises UsageError if no kernel takes it."""
    return chosen("dtype", str(x.dtype))  # type: ignore[return-value]


def rounded(x: NDArray[Any], element: str) -> NDArray[Any]:
    """Return a matrix in an element's type, rounded to nearest even; itself if it is of that.

    What is too large for the type becomes infinite.
    """
    with np.errstate(all="ignore"):
        return x.astype(numpy_dtype(element), copy=False)


def finfo(element: str) -> Any:
    """Return the limits of an element's type, as `numpy.finfo` has them."""
    return ml_dtypes.finfo(numpy_dtype(element))  # type: ignore[no-untyped-call]
