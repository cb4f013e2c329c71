"""Named input matrices: what a kernel is tried on, each made from a seed.

Every distribution is here because some mistake shows on it; the docstring of its maker says which.
All of them can be made for any number of rows and columns, 0 included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgen.errors import UsageError
from kgen.evidence.memory import require_memory
from kgen.numpy_types import finfo, numpy_dtype, rounded
from kgen.specs.choice import Element
from kgen.specs.declared import FLOAT32
from kgen.text import did_you_mean

Matrix = NDArray[Any]

OUTLIER = 1e4


@dataclass(frozen=True)
class Draw:
    """What inputs are made with: chance, in the type that is computed with, and for which type."""

    rng: np.random.Generator
    compute: Any
    largest: float

    def random(self, rows: int, cols: int) -> Matrix:
        """Return numbers in [0, 1)."""
        return self.rng.random((rows, cols), dtype=self.compute)


Maker = Callable[[Draw, int, int], Matrix]


def make(name: str, rows: int, cols: int, seed: int = 42, element: Element = FLOAT32) -> Matrix:
    """Return the input called `name` as a matrix of rows x cols, the same for equal seeds.

    It is made in the type that `element` is computed with, and rounded. Raises UsageError for a
    name that is not in `ALL_INPUTS` and for a negative size, MissingTool for more than this machine
    has memory for.
    """
    if name not in _MAKERS:
        raise UsageError(f"no input is called {name!r}{did_you_mean(name, _MAKERS)}")
    if rows < 0 or cols < 0:
        raise UsageError(f"an input cannot have {rows} rows and {cols} columns; neither is below 0")
    require_memory(rows, cols)
    compute = numpy_dtype(element.compute or element)
    draw = Draw(np.random.default_rng(seed), compute, float(finfo(element).max))
    return rounded(_MAKERS[name](draw, rows, cols), element)


def _uniform(draw: Draw, rows: int, cols: int) -> Matrix:
    """Uniform in [-10, 10): the studies' input for checks and for times."""
    x = draw.random(rows, cols)
    x *= 20
    x -= 10
    return x


def _zeros(draw: Draw, rows: int, cols: int) -> Matrix:
    """Every element counts the same: one that is skipped or read twice changes all of the row."""
    return np.zeros((rows, cols), draw.compute)


def _special_last(draw: Draw, rows: int, cols: int) -> Matrix:
    """Zeros, and 100 at the end of each row: a lost tail, or exp(x) without the maximum, shows."""
    x = np.zeros((rows, cols), draw.compute)
    x[:, -1:] = 100
    return x


def _shifted_row(draw: Draw, rows: int, cols: int) -> Matrix:
    """Uniform with 1000 added to the middle row: its softmax stays, unless rows are mixed up."""
    x = _uniform(draw, rows, cols)
    x[_middle(rows)] += 1000
    return x


def _outliers(draw: Draw, rows: int, cols: int) -> Matrix:
    """Uniform with an element in a hundred at +1e4 (even rows) or -1e4 (odd rows)."""
    x = _uniform(draw, rows, cols)
    chosen = _choose(draw, rows, cols, share=0.01)
    x[::2][chosen[::2]] = OUTLIER
    x[1::2][chosen[1::2]] = -OUTLIER
    return x


def _with_maximum(maximum: float) -> Maker:
    """Uniform, moved so that each row's maximum is `maximum`: a maximum started at 0 shows."""

    def make_shifted(draw: Draw, rows: int, cols: int) -> Matrix:
        x = _uniform(draw, rows, cols)
        x -= x.max(axis=1, keepdims=True, initial=-10)
        x += maximum
        return x

    return make_shifted


def _ascending(draw: Draw, rows: int, cols: int) -> Matrix:
    """Every element is the row's new maximum: each step of an online update rescales its sum."""
    return np.tile(np.arange(cols, dtype=draw.compute) / 16, (rows, 1))


def _near_minus_1e7(draw: Draw, rows: int, cols: int) -> Matrix:
    """Within 100 of -1e7: x * log2(e) has lost the fraction that x - max still has.

    A type that ends before has them near its end. Ten times the uniform range, so that long rows
    are not sums of a few values repeated, whose rounding errors all go the same way.
    """
    x = _uniform(draw, rows, cols)
    x *= 10
    x -= min(1e7, 0.9 * draw.largest)
    return x


def _huge(draw: Draw, rows: int, cols: int) -> Matrix:
    """All over the type: x * log2(e) overflows; every third row is all its lowest number."""
    x = _uniform(draw, rows, cols)
    x *= draw.compute.type(0.0999) * draw.compute.type(draw.largest)  # -10 must not become -inf
    x[1::3] = draw.largest
    x[2::3] = -draw.largest
    return x


def _with_special(value: float) -> Maker:
    """Uniform with `value` at one random place of every even row: that row is NaN, no other."""

    def make_special(draw: Draw, rows: int, cols: int) -> Matrix:
        x = _uniform(draw, rows, cols)
        even_rows = np.arange(0, rows if cols else 0, 2)
        x[even_rows, draw.rng.integers(0, max(cols, 1), even_rows.size)] = value
        return x

    return make_special


def _with_minus_inf(draw: Draw, rows: int, cols: int) -> Matrix:
    """Uniform with -inf first in each row and at one place in eight; row 0 starts -inf, 0, 1.

    An online update that starts at -inf, or a merge of two such states, gives (-inf) - (-inf).
    """
    x = _uniform(draw, rows, cols)
    x[_choose(draw, rows, cols, share=0.125)] = -np.inf
    x[:, :1] = -np.inf
    x[:1, :3] = [-np.inf, 0, 1][:cols]
    return x


def _all_minus_inf(draw: Draw, rows: int, cols: int) -> Matrix:
    """Uniform, the middle row all -inf: that row is NaN (0 / 0), and no other."""
    x = _uniform(draw, rows, cols)
    x[_middle(rows)] = -np.inf
    return x


def _middle(rows: int) -> slice:
    """The middle row; nothing when there are no rows."""
    return slice(rows // 2, rows // 2 + 1)


def _choose(draw: Draw, rows: int, cols: int, share: float) -> NDArray[np.bool_]:
    """Choose that share of the elements at random."""
    return draw.random(rows, cols) < share


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
