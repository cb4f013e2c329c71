"""The inputs that somebody's kernel has to be right on, and those of which it is only told."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kgen.evidence.inputs import Matrix
from kgen.evidence.reference import Verdict, criterion_for, judge
from kgen.sources.source import Source

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


def verdict_on(source: Source, y: Matrix, x: Matrix) -> tuple[Verdict, str]:
    """Return the verdict on an output of any source, and what is told of rows of odd numbers.

    Those of an adopted source fail nothing.
    """
    asked = criterion_for(source, x.shape[1])
    if not source.contract:
        return judge(y, x, asked), ""
    plain = ordinary_rows(x)
    odd = judge(y[~plain], x[~plain], asked)
    told = "" if odd.ok else f"of {int((~plain).sum())} rows with odd numbers, {odd.reason}"
    return judge(y[plain], x[plain], asked), told
