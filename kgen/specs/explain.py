"""Why a combination is refused, and the nearest one that is valid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, product
from typing import Any, get_type_hints

from kgen.specs.rules import MAX_THREADS_PER_BLOCK, Problem, natural_topology, problems
from kgen.specs.spec import WARP_SIZE, Spec, differences, format_value, short_name
from kgen.specs.variants import spelling
from kgen.specs.versions import find_version

_TYPES = get_type_hints(Spec)
# What is worth trying on the axes whose values are not listed by a type.
_TRIED: dict[str, tuple[Any, ...]] = {
    "vec_size": (1, 2, 4),
    "prefetch": (False, True),
    "items_per_thread": (None, 1, 4),
    "tile_size": (None, 1024),
    "threads_per_block": (1, *range(WARP_SIZE, MAX_THREADS_PER_BLOCK + 1, WARP_SIZE)),
    "grid_blocks": (None,),
    "min_blocks_per_sm": (None, 1),
    "static_cols": (None,),
}


@dataclass(frozen=True)
class Explanation:
    """The rules that a spec breaks, and the nearest valid spec (the spec itself when none is)."""

    spec: Spec
    problems: tuple[Problem, ...]
    nearest: Spec | None

    @property
    def nearest_changes(self) -> str:
        """What to change to get the nearest valid spec."""
        if self.nearest is None:
            return ""
        return ",".join(
            f"{short_name(axis)}={format_value(new)}"
            for axis, (_, new) in differences(self.spec, self.nearest).items()
        )

    @property
    def nearest_variant(self) -> str:
        """The nearest valid spec as a user types it."""
        return spelling(self.nearest) if self.nearest else ""


def explain(spec: Spec) -> Explanation:
    """Return why the rules refuse a spec, if they do, and the nearest one that they accept."""
    found = tuple(problems(spec))
    return Explanation(spec, found, nearest_valid(spec) if found else spec)


def nearest_valid(spec: Spec) -> Spec | None:
    """Return the valid spec that changes the fewest of the clashing axes, up to three.

    Axes that the user left as the version has them are changed before those that the user set.
    """
    base = find_version(spec.version).spec
    clashing = list(dict.fromkeys(axis for problem in problems(spec) for axis in problem.axes))
    own = set(differences(base, spec))
    clashing.sort(key=lambda axis: axis in own)
    for changed in range(1, 4):
        for axes in combinations(clashing, changed):
            for candidate in _candidates(spec, axes):
                if not problems(candidate):
                    return candidate
    return None


def _candidates(spec: Spec, axes: tuple[str, ...]) -> Iterator[Spec]:
    choices = [
        sorted(_values(axis), key=lambda value: _distance(spec, axis, value)) for axis in axes
    ]
    for values in product(*choices):
        yield spec.replace(**dict(zip(axes, values, strict=True)))


def _values(axis: str) -> tuple[Any, ...]:
    kind = _TYPES[axis]
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return tuple(kind)
    return _TRIED[axis]


def _distance(spec: Spec, axis: str, value: Any) -> float:
    """Order the values of an axis: close numbers first, the natural reduction, then as listed."""
    current = getattr(spec, axis)
    if isinstance(current, int) and isinstance(value, int):
        return abs(value - current)
    if axis == "topology":
        return 0 if value is natural_topology(spec) else 1
    return list(_values(axis)).index(value)
