"""Why a combination is refused, and the nearest one that is valid."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kgen.limits import MAX_THREADS_PER_BLOCK, WARP_SIZE, arch_number
from kgen.specs.axes import listed_values
from kgen.specs.choice import Choice
from kgen.specs.fields import AXES, CHOICE_AXES, SWEPT_NUMBERS, format_value, short_name
from kgen.specs.rules import Problem, natural_topology, problems, problems_for
from kgen.specs.rules.caches import value_limit
from kgen.specs.spec import DEFAULT_COLS, Spec, differences
from kgen.specs.variants import spelling
from kgen.specs.versions import find_version

# What is to be computed, and not how.
_ASKED = ("op", "dtype", "out_dtype")
MAX_CHANGES = 4
# How many of the places reached so far are searched further.
MAX_PLACES = 60
# What is worth trying on the axes whose values are not listed by a type.
_TRIED: dict[str, tuple[Any, ...]] = {
    "threads_per_row": (None, 1, 2, 4, 8, 16, WARP_SIZE),
    "rows_at_once": SWEPT_NUMBERS["rows_at_once"],
    "vec_size": SWEPT_NUMBERS["vec_size"],
    "items_per_thread": (None, 1, 4),
    "tile_size": (None, 1024),
    "threads_per_block": (1, *range(WARP_SIZE, MAX_THREADS_PER_BLOCK + 1, WARP_SIZE)),
    "grid_blocks": (None,),
    "blocks_per_row": (1, 2, 4, 8, 16),
    "min_blocks_per_sm": (None, 1, 2, 4, 8),
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


def explain(spec: Spec, arch: str = "") -> Explanation:
    """Return why the rules refuse a spec, if they do, and the nearest one that they accept.

    With `arch`, such as `sm_80`, what it lacks is a reason, too.
    """
    found = tuple(_refusals(spec, arch))
    return Explanation(spec, found, nearest_valid(spec, arch) if found else spec)


def _refusals(spec: Spec, arch: str) -> list[Problem]:
    return problems(spec) or (list(_lacking(spec, arch)) if arch else [])


def _lacking(spec: Spec, arch: str) -> Iterator[Problem]:
    """Yield each choice of a spec that an architecture lacks."""
    for axis in sorted(CHOICE_AXES, key=list(AXES).index):
        choice = getattr(spec, axis)
        if arch_number(choice.requires) > arch_number(arch):
            way = _older(spec, axis, arch)
            yield Problem(
                (axis,),
                f"{short_name(axis)}={choice} needs {choice.requires} or newer, which {arch} is "
                f"not; use {short_name(axis)}={way}",
            )


def _older(spec: Spec, axis: str, arch: str) -> Choice:
    """Return the choice most like the spec's that an architecture has, a valid one if there is."""

    def unwelcome(value: Choice) -> tuple[bool, float]:
        return bool(problems(spec.replace(**{axis: value}))), _distance(spec, axis, value)

    values: tuple[Choice, ...] = listed_values(axis, spec.overlay)
    return min((v for v in values if arch_number(v.requires) <= arch_number(arch)), key=unwelcome)


def nearest_valid(spec: Spec, arch: str = "") -> Spec | None:
    """Return a valid spec that changes as few axes as can be, up to four; None when none is found.

    Only axes that a broken rule names are changed, those that the user left as the version has them
    before those that the user set, and last of all those of what is computed. A spec with `auto`
    items must be able to hold DEFAULT_COLS, so that it can be built.
    """
    kept = set(differences(find_version(spec.version).spec, spec))
    found, seen = [spec], {spec}
    for _ in range(MAX_CHANGES):
        tried = [
            candidate for place in found[:MAX_PLACES] for candidate in _changed(place, kept, arch)
        ]
        valid = next((candidate for candidate in tried if _can_be_built(candidate, arch)), None)
        if valid:
            return valid
        found = [candidate for candidate in dict.fromkeys(tried) if candidate not in seen]
        found.sort(key=lambda candidate: len(_refusals(candidate, arch)))
        seen.update(found)
    return None


def _can_be_built(spec: Spec, arch: str) -> bool:
    needs_length = spec.in_registers and spec.items_per_thread is None and not spec.static_cols
    return not _refusals(spec, arch) and not (needs_length and problems_for(spec, 1, DEFAULT_COLS))


def _changed(spec: Spec, kept: set[str], arch: str) -> Iterator[Spec]:
    """Yield the spec with one of its clashing axes changed, the most welcome changes first."""
    found = _refusals(spec, arch) or problems_for(spec, 1, DEFAULT_COLS)
    clashing = dict.fromkeys(axis for problem in found for axis in problem.axes)
    for axis in sorted(clashing, key=lambda axis: (axis in _ASKED, axis in kept)):
        for value in sorted(_values(spec, axis), key=lambda value: _distance(spec, axis, value)):
            if value != getattr(spec, axis):
                yield spec.replace(**{axis: value})


def _values(spec: Spec, axis: str) -> tuple[Any, ...]:
    if listed := listed_values(axis, spec.overlay):
        return listed
    if axis == "items_per_thread" and spec.in_registers:
        most = (value_limit(spec) - spec.tail_slots) // spec.vec_size
        return (*_TRIED[axis], *([most] if most >= 1 else []))
    return _TRIED[axis]


def _distance(spec: Spec, axis: str, value: Any) -> float:
    """Order the values of an axis: close numbers, the natural reduction or what is alike first."""
    current = getattr(spec, axis)
    if isinstance(current, int):
        return abs(value - current) if isinstance(value, int) else math.inf
    if axis == "topology":
        return 0 if value == natural_topology(spec) else 1
    listed = list(_values(spec, axis))
    unlike = current.unlike(value) if isinstance(current, Choice) else 0
    return unlike + listed.index(value) / len(listed)
