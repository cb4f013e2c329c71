"""The space of a sweep: variants, the axis values to set on them, shapes, and a condition."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kgen.errors import UsageError
from kgen.overlay import OURS, Overlay
from kgen.shape import Shape
from kgen.specs.axes import find_axis, parse_value, swept_values
from kgen.specs.fields import AXES, axes_set_by, format_value, short_name
from kgen.specs.types import Types
from kgen.specs.variants import settings
from kgen.specs.versions import VERSIONS
from kgen.sweep.where import Where

# The longest list of values that a range such as 32..1024:32 may stand for.
MAX_RANGE = 4096
_RANGE = re.compile(r"([0-9]{1,9})\.\.([0-9]{1,9})(?::([0-9]{1,9}))?")


@dataclass(frozen=True)
class Space:
    """Every variant with every combination of the axes' values, on every shape rows x cols.

    The condition `where`, if there is one, narrows it. `make` reads one from what a user writes.
    """

    variants: tuple[str, ...]
    rows: tuple[int, ...] = (1024,)
    cols: tuple[int, ...] = (4096,)
    axes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    where: str = ""
    overlay: Overlay = OURS

    @classmethod
    def make(
        cls,
        variants: Iterable[str],
        rows: Iterable[int] = (1024,),
        cols: Iterable[int] = (4096,),
        axes: Mapping[str, Iterable[object]] | None = None,
        where: str = "",
        overlay: Overlay = OURS,
    ) -> Space:
        """Return the space of what a user writes: axes short or in full, values as in a variant.

        A value may be a range: `32..1024:32` is every 32nd from 32 to 1024. Raises UsageError for
        anything unknown, with the nearest known, for a size below 1, and for an axis that both a
        variant and the sweep set.
        """
        listed = tuple(dict.fromkeys(variants))
        values = read_axes(axes or {}, overlay)
        for variant in listed:
            _check_variant(variant, values, overlay)
        if where:
            Where(where, overlay)
        return cls(listed, _sizes("rows", rows), _sizes("cols", cols), values, where, overlay)

    def changed(
        self,
        variants: Iterable[str] = (),
        rows: Iterable[int] = (),
        cols: Iterable[int] = (),
        axes: Mapping[str, Iterable[object]] | None = None,
        where: str = "",
    ) -> Space:
        """Return the space with what is given here.

        Variants, rows, cols and the values of an axis replace those that were there; further axes
        are added, and a further condition must hold as well.
        """
        return Space.make(
            tuple(variants) or self.variants,
            tuple(rows) or self.rows,
            tuple(cols) or self.cols,
            {**_written(self.axes), **{find_axis(word): of for word, of in (axes or {}).items()}},
            f"({self.where}) and ({where})" if self.where and where else self.where or where,
            self.overlay,
        )

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """All rows with all cols."""
        return tuple(itertools.product(self.rows, self.cols))

    @property
    def combinations(self) -> int:
        """How many points there are before any is left out."""
        sizes = (len(of) for of in (self.variants, self.rows, self.cols, *self.axes.values()))
        return math.prod(sizes)


def everything(
    rows: Iterable[int],
    cols: Iterable[int],
    where: str = "",
    overlay: Overlay = OURS,
    types: Mapping[str, Iterable[object]] | None = None,
) -> tuple[Space, Space]:
    """Return the spaces of all versions, and of every combination over all axes.

    Both are of the `types` that are given as axes, float32 where none is.
    What is tried on an axis of numbers is in `kgen.specs.fields.SWEPT_NUMBERS`.
    """
    versions = Space.make(VERSIONS, rows, cols, types, where, overlay)
    axes = {axis: swept_values(axis, overlay) for axis in AXES if axis not in Types._fields}
    return versions, replace(versions, variants=("v1",), axes={**axes, **versions.axes})


def read_axes(
    axes: Mapping[str, Iterable[object]], overlay: Overlay = OURS
) -> dict[str, tuple[Any, ...]]:
    """Return the axes by their full names with their values. Raises UsageError as `make` does."""
    values: dict[str, tuple[Any, ...]] = {}
    for word, written in axes.items():
        axis = find_axis(word)
        if axis in values:
            raise UsageError(f"the sweep sets {short_name(axis)} twice")
        parsed = (
            parse_value(axis, text, overlay) for entry in written for text in _expanded(axis, entry)
        )
        values[axis] = tuple(dict.fromkeys(parsed))
        if not values[axis]:
            raise UsageError(f"the sweep gives {word} no value; name some, or leave {word} out")
    return values


def parse_setting(text: str) -> tuple[str, tuple[str, ...]]:
    """Read `threads=128,256` into the axis and its values. Raises UsageError if it is not that."""
    word, equals, values = (part.strip() for part in text.partition("="))
    listed = tuple(value.strip() for value in values.split(",") if value.strip())
    if not equals or not listed:
        raise UsageError(f"{text!r} gives no values; write it as threads=128,256")
    return find_axis(word), listed


def _expanded(axis: str, entry: object) -> list[str]:
    """Return the values that an entry stands for: one, unless it is a range."""
    text = format_value(entry)
    found = _RANGE.fullmatch(text)
    if not found:
        return [text]
    first, last, step = int(found[1]), int(found[2]), int(found[3] or 1)
    if step < 1 or not first <= last < first + step * MAX_RANGE:
        raise UsageError(
            f"{short_name(axis)}={text} is no range of 1 to {MAX_RANGE} values; "
            "write it as 32..1024:32, which is first..last:step"
        )
    return [str(value) for value in range(first, last + 1, step)]


def _written(axes: Mapping[str, tuple[Any, ...]]) -> dict[str, tuple[str, ...]]:
    return {axis: tuple(map(format_value, values)) for axis, values in axes.items()}


def _check_variant(variant: str, axes: Mapping[str, object], overlay: Overlay) -> None:
    swept = frozenset().union(*map(axes_set_by, axes))
    for axis in settings(variant, overlay)[1]:
        if axis in swept:
            raise UsageError(
                f"{variant} sets {short_name(axis)}, and so does the sweep; leave it out of one"
            )


def _sizes(word: str, sizes: Iterable[int]) -> tuple[int, ...]:
    listed = tuple(dict.fromkeys(sizes))
    wrong = [size for size in listed if not isinstance(size, int) or size < 1]
    if wrong or not listed:
        raise UsageError(f"{word}={wrong or listed}: a sweep needs whole numbers from 1 on")
    return listed
