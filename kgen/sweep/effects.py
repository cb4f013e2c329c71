"""What each axis was worth on one shape: on the whole, and around the winner."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from kgen.specs.fields import AXES, short_name
from kgen.store.measurement import Kind, Measurement, Outcome
from kgen.sweep.rows import axes_of, best_first, cost_us, is_tied, ratio

Axes = Mapping[str, str]
# The axis that is looked at, and perhaps one that moves with it.
Free = tuple[str, ...]
# The values of all other axes.
Setting = tuple[str, ...]
Costs = dict[Setting, float]


@dataclass(frozen=True)
class Value:
    """A value of an axis against the axis' best value, over `pairs` settings that have both.

    A setting is one value for every other axis; for the best value itself they are all that it
    has. `ratio` is the geometric mean of the times over
    the best value's, `least` and `most` its range: far apart, they tell that other axes decide.
    Without a pair there is nothing to compare, and they are None.
    """

    value: str
    pairs: int
    ratio: float | None = None
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True)
class Alternative:
    """Another value of an axis, everything else being as in the winner.

    `ratio` is its time over the winner's; a `tied` one is not distinguishably slower. One that has
    no time has the outcome and the `reason` instead.
    """

    value: str
    ratio: float | None = None
    tied: bool = False
    reason: str = ""


@dataclass(frozen=True)
class Effect:
    """What an axis was worth.

    `values` are sorted, the best first. `winner` is the winner's value and `alternatives` the
    others that were tried with it, the fastest first. Where no two settings differ in this axis
    alone, `moves_with` names one that changes with it; each value then has the best of that one.
    """

    axis: str
    values: tuple[Value, ...]
    winner: str
    alternatives: tuple[Alternative, ...]
    moves_with: str = ""


class _Tried(NamedTuple):
    """A row with its axes; one that is no contender has no cost."""

    row: Measurement
    axes: Axes
    cost: float | None

    def setting(self, free: Free) -> Setting:
        """Return the values of all axes but the free ones."""
        return _all_but(free)(self.axes)


@lru_cache
def _all_but(free: Free) -> Callable[[Axes], Setting]:
    return itemgetter(*(name for name in AXES if name not in free))


def effects(rows: Iterable[Measurement]) -> list[Effect]:
    """Return the effect of every axis that has two values among the right variants of one shape.

    Edited files are left out: what they do is not what their axes say.
    """
    variants = [row for row in rows if row.kind is Kind.VARIANT and row.spec]
    order = best_first(variants)
    costs = {id(row): cost_us(row) for row in order}
    tried = [_Tried(row, axes_of(row), costs.get(id(row))) for row in variants]
    varied = [axis for axis in AXES if len({one.axes[axis] for one in tried if one.cost}) > 1]
    best = next((one for one in tried if order and one.row is order[0]), None)
    return [_effect(axis, varied, tried, best) for axis in varied if best]


def _effect(axis: str, varied: Sequence[str], tried: Sequence[_Tried], best: _Tried) -> Effect:
    free = _free(axis, varied, tried)
    return Effect(
        short_name(axis),
        _values(free, tried),
        best.axes[axis],
        tuple(_alternatives(free, tried, best)),
        "".join(map(short_name, free[1:])),
    )


def _free(axis: str, varied: Sequence[str], tried: Sequence[_Tried]) -> Free:
    """Return the axis, with the one that makes most pairs beside it if it makes none alone."""

    def pairs(free: Free) -> int:
        return sum(value.pairs for value in _values(free, tried))

    if pairs((axis,)):
        return (axis,)
    return max([(axis,), *((axis, other) for other in varied if other != axis)], key=pairs)


def _values(free: Free, tried: Sequence[_Tried]) -> tuple[Value, ...]:
    """Return the values of the first of the free axes, compared where all others are equal."""
    costs: dict[str, Costs] = {}
    for one in tried:
        if one.cost is not None:
            by_setting = costs.setdefault(one.axes[free[0]], {})
            setting = one.setting(free)
            by_setting[setting] = min(one.cost, by_setting.get(setting, math.inf))
    reference = costs[_reference(costs)]
    values = [_value(value, costs[value], reference) for value in costs]
    if sum(value.pairs > 0 for value in values) == 1:  # the reference with itself
        values = [Value(value.value, 0) for value in values]
    return tuple(sorted(values, key=lambda value: value.ratio or math.inf))


def _value(value: str, costs: Costs, reference: Costs) -> Value:
    ratios = [cost / reference[setting] for setting, cost in costs.items() if setting in reference]
    if not ratios:
        return Value(value, 0)
    return Value(value, len(ratios), _mean(ratios), min(ratios), max(ratios))


def _reference(by_value: Mapping[str, Costs]) -> str:
    """Return the best value: comparable with any other, and slower than as few as can be."""
    pairs = dict.fromkeys(by_value, 0)
    beaten = dict.fromkeys(by_value, 0)
    for a, b in itertools.combinations(by_value, 2):
        ratios = [by_value[a][key] / by_value[b][key] for key in by_value[a] if key in by_value[b]]
        if ratios:
            pairs[a] += len(ratios)
            pairs[b] += len(ratios)
            beaten[a if _mean(ratios) > 1 else b] += 1
    return min(by_value, key=lambda value: (not pairs[value], beaten[value], -pairs[value]))


def _mean(ratios: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


def _alternatives(free: Free, tried: Sequence[_Tried], best: _Tried) -> list[Alternative]:
    """Return what came of the other values of the first free axis, the others as in the best."""
    axis, setting = free[0], best.setting(free)
    found: dict[str, Alternative] = {}
    for one in sorted(tried, key=lambda one: one.cost or math.inf):
        value = one.axes[axis]
        if value != best.axes[axis] and one.setting(free) == setting:
            if one.cost is not None:
                slower = ratio(one.row, best.row).median
                found.setdefault(value, Alternative(value, slower, is_tied(one.row, best.row)))
            elif one.row.outcome is not Outcome.OK:
                reason = f"{one.row.outcome}: {one.row.reason}"
                found.setdefault(value, Alternative(value, reason=reason))
    return list(found.values())
