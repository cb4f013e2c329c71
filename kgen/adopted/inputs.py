"""The inputs that somebody's kernel has to be right on, and those of which it is only told."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kgen.evidence.inputs import Matrix

ORDINARY = (
    *("uniform", "special_last", "zeros", "max_minus_200", "outliers", "ascending"),
    *("shifted_row", "max_minus_20000"),
)
ODD = ("with_minus_inf", "all_minus_inf", "with_plus_inf", "with_nan", "huge", "near_minus_1e7")
# Numbers beyond these are odd: float32 has hardly a fraction there.
_LARGE = 1e6


def ordinary_rows(x: Matrix) -> NDArray[np.bool_]:
    """Return which rows of a matrix have nothing but ordinary numbers."""
    return np.all(np.abs(x) <= _LARGE, axis=1)  # type: ignore[no-any-return] # false of NaN
