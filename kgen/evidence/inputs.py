"""Named input matrices: what a kernel is tried on, each made from a seed.

Every distribution is here because some mistake shows on it; the docstring of its maker says which.
All of them can be made for any number of rows and columns, 0 included.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kgen.errors import UsageError
from kgen.evidence.memory import require_memory
from kgen.text import did_you_mean

Matrix = NDArray[np.float32]
Maker = Callable[[np.random.Generator, int, int], Matrix]

FLOAT_MAX = np.finfo(np.float32).max
OUTLIER = np.float32(1e4)


def make(name: str, rows: int, cols: int, seed: int = 42) -> Matrix:
    """Return the input called `name` as a float32 matrix of rows x cols, the same for equal seeds.

    Raises UsageError for a name that is not in `ALL_INPUTS` and for a negative size, MissingTool
    for more than this machine has memory for.
    """
    if name not in _MAKERS:
        raise UsageError(f"no input is called {name!r}{did_you_mean(name, _MAKERS)}")
    if rows < 0 or cols < 0:
        raise UsageError(f"an input cannot have {rows} rows and {cols} columns; neither is below 0")
    require_memory(rows, cols)
    return _MAKERS[name](np.random.default_rng(seed), rows, cols)


def _uniform(rng: np.random.Generator, rows: int, cols: int) -> Matrix:
    """Uniform in [-10, 10): the studies' input for checks and for times."""
    x = rng.random((rows, cols), dtype=np.float32)
    x *= 20
    x -= 10
    return x


def _zeros(rng: np.random.Generator, rows: int, cols: int) -> Matrix:
    """Every element counts the same: one that is skipped or read twice changes all of the row."""
    return np.zeros((rows, cols), np.float32)


def _special_last(rng: np.random.Generator, rows: int, cols: int) -> Matrix:
    """Zeros, and 100 at the end of each row: a lost tail, or exp(x) without the maximum, shows."""
    x = np.zeros((rows, cols), np.float32)
    x[:, -1:] = 100
    return x


def _shifted_row(rng: np.random.Generator, rows: int, cols: int) -> Matrix:
    """Uniform with 1000 added to the middle row: its softmax stays, unless rows are mixed up."""
    x = _uniform(rng, rows, cols)
    x[_middle(rows)] += 1000
    return x


def _outliers(rng: np.random.Generator, rows: int, cols: int) -> Matrix:
    """Uniform with an element in a hundred at +1e4 (even rows) or -1e4 (odd rows)."""
    x = _uniform(rng, rows, cols)
    chosen = _choose(rng, rows, cols, share=0.01)
    x[::2][chosen[::2]] = OUTLIER
    x[1::2][chosen[1::2]] = -OUTLIER
    return x


def _with_maximum(maximum: float) -> Maker:
    """Uniform, moved so that each row's maximum is `maximum`: a maximum started at 0 shows."""

    def make_shifted(rng: np.random.Generator, rows: int, cols: int) -> Matrix:
        x = _uniform(rng, rows, cols)
        x -= x.max(axis=1, keepdims=True, initial=-10)
        x += np.float32(maximum)
        return x

    return make_shifted


def _ascending(rng: np.random.Generator, rows: int, cols: int) -> Matrix:
    """Every element is the row's new maximum: each step of an online update rescales its sum."""
    return np.tile(np.arange(cols, dtype=np.float32) / 16, (rows, 1))


def _near_minus_1e7(rng: np.random.Generator, rows: int, cols: int) -> Matrix:
    """Whole numbers within 100 of -1e7: x * log2(e) has lost the fraction that x - max still has.

    Ten times the uniform range, so that long rows are not sums of a few values repeated, whose
    rounding errors all go the same way.
    """
    x = _uniform(rng, rows, cols)
    x *= 10
    x -= 1e7
    return x


def _huge(rng: np.random.Generator, rows: int, cols: int) -> Matrix:
    """Between -FLT_MAX and FLT_MAX: x * log2(e) overflows; every third row is all -FLT_MAX."""
    x = _uniform(rng, rows, cols)
    x *= np.float32(0.0999) * FLOAT_MAX  # just inside: -10 must not become -inf
    x[1::3] = FLOAT_MAX
    x[2::3] = -FLOAT_MAX
    return x


def _with_special(value: float) -> Maker:
    """Uniform with `value` at one random place of every even row: that row is NaN, no other."""

    def make_special(rng: np.random.Generator, rows: int, cols: int) -> Matrix:
        x = _uniform(rng, rows, cols)
        even_rows = np.arange(0, rows if cols else 0, 2)
        x[even_rows, rng.integers(0, max(cols, 1), even_rows.size)] = value
        return x

    return make_special


def _with_minus_inf(rng: np.random.Generator, rows: int, cols: int) -> Matrix:
    """Uniform with -inf first in each row and at one place in eight; row 0 starts -inf, 0, 1.

    An online update that starts at -inf, or a merge of two such states, gives (-inf) - (-inf).
    """
    x = _uniform(rng, rows, cols)
    x[_choose(rng, rows, cols, share=0.125)] = -np.inf
    x[:, :1] = -np.inf
    x[:1, :3] = [-np.inf, 0, 1][:cols]
    return x


def _all_minus_inf(rng: np.random.Generator, rows: int, cols: int) -> Matrix:
    """Uniform, the middle row all -inf: that row is NaN (0 / 0), and no other."""
    x = _uniform(rng, rows, cols)
    x[_middle(rows)] = -np.inf
    return x


def _middle(rows: int) -> slice:
    """The middle row; nothing when there are no rows."""
    return slice(rows // 2, rows // 2 + 1)


def _choose(rng: np.random.Generator, rows: int, cols: int, share: float) -> NDArray[np.bool_]:
    """Choose that share of the elements at random."""
    return rng.random((rows, cols), dtype=np.float32) < share


_MAKERS: dict[str, Maker] = {
    "zeros": _zeros,
    "special_last": _special_last,
    "shifted_row": _shifted_row,
    "uniform": _uniform,
    "outliers": _outliers,
    "max_minus_200": _with_maximum(-200),
    "max_minus_20000": _with_maximum(-20000),
    "ascending": _ascending,
    "near_minus_1e7": _near_minus_1e7,
    "huge": _huge,
    "with_nan": _with_special(np.nan),
    "with_plus_inf": _with_special(np.inf),
    "with_minus_inf": _with_minus_inf,
    "all_minus_inf": _all_minus_inf,
}

ALL_INPUTS = tuple(_MAKERS)
