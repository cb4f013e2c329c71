"""The plan of a sweep: the points that can run, and what left the others out."""

from __future__ import annotations

import gc
import math
import operator
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kgen.errors import UsageError
from kgen.shape import Shape
from kgen.specs.fields import AXES, axes_set_by
from kgen.specs.follow import LEADING_AXES, MOVING_AXES, follow
from kgen.specs.rules import NUMBER_RULES, RULES, SHAPE_READS, Rule, name_of, refusals_for
from kgen.specs.spec import Spec
from kgen.specs.types import common_types, types_of
from kgen.specs.variants import settings
from kgen.sweep.point import Point
from kgen.sweep.space import Space
from kgen.sweep.where import Where

# Each point takes about a kilobyte while it is planned.
MAX_POINTS = 2_000_000


@dataclass
class Plan:
    """What of a sweep can run, and how many of its `combinations` were left out, and why.

    `refused` counts by the rule that refused them, in words; `filtered` did not meet the sweep's
    condition, `merged` were the same kernel on the same shape as an earlier point, and `unlikely`
    are not tried, since the model expects others to be faster (`kgen.sweep.likely`).
    """

    points: list[Point] = field(default_factory=list)
    combinations: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    filtered: int = 0
    merged: int = 0
    unlikely: int = 0


def plan(*spaces: Space) -> Plan:
    """Return the points of the spaces that can run, in the order of the spaces and their variants.

    Of points that are the same kernel on the same shape, whatever version they are spelt from, the
    first stays. Raises UsageError when a space has no variant, when its condition has no value at a
    point, when more points than MAX_POINTS are left, or when these differ in type.
    """
    made, seen = Plan(), set[Identity]()
    for space in spaces:
        if not space.variants:
            raise UsageError("the sweep has no variant; name some, such as v5 and v7")
        made.combinations += space.combinations
        with _nothing_collected():
            for variant in space.variants:
                walk = _Walk(space, variant, made, seen)
                walk.visit(walk.start, space.shapes, 0)
    of_each = {types_of(point.spec): point for point in made.points}
    common_types({types: point.variant for types, point in of_each.items()})
    return made


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Spare the collector a third of the time: points by the 100,000 are kept, and no garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# What tells kernels on shapes apart: every axis of the resolved spec, rows and cols.
Identity = tuple[object, ...]
_values_of = operator.attrgetter(*AXES.keys() - {"items_per_thread"}, "overlay")


def _place(axis: str) -> tuple[bool, bool, int]:
    """Order the axes: those that others follow, those that shapes ask, those that rules read."""
    sets = axes_set_by(axis)
    asked = sum(not sets.isdisjoint(rule.reads) for rule in RULES)
    return sets.isdisjoint(LEADING_AXES), sets.isdisjoint(SHAPE_READS), -asked


class _Refusal:
    """A rule that is asked once for each combination of what it reads."""

    def __init__(self, rule: Rule) -> None:
        self.name, self.reads, self._check = rule.name, rule.reads, rule.check
        self._asked = operator.attrgetter(*rule.reads)
        self._known: dict[object, bool] = {}

    def refuses(self, spec: Spec) -> bool:
        """Whether a spec breaks the rule."""
        asked = self._asked(spec)
        known = self._known.get(asked)
        if known is None:
            known = self._known[asked] = next(self._check(spec), None) is not None
        return known


class _Walk:
    """Goes through the combinations of one variant, one axis after the other.

    The axes that others follow come first; once they are set, the others follow. A rule is asked
    as soon as the axes that it reads are set, and refuses all combinations that begin so at once:
    so the axes that few rules read come last.
    """

    def __init__(self, space: Space, variant: str, made: Plan, seen: set[Identity]) -> None:
        self.space, self.made, self.seen = space, made, seen
        self.where = Where(space.where, space.overlay) if space.where else None
        self.base, self.fixed = settings(variant, space.overlay)
        single = {axis: values[0] for axis, values in space.axes.items() if self._is_single(axis)}
        self.start = self.base.replace(**self.fixed, **single)
        self.named = frozenset(self.fixed).union(*map(axes_set_by, space.axes))
        self.order = sorted(space.axes.keys() - single.keys(), key=_place)
        self.leading = sum(not axes_set_by(axis).isdisjoint(LEADING_AXES) for axis in self.order)
        self.due: list[list[_Refusal]] = [[] for _ in range(len(self.order) + 1)]
        for rule in map(_Refusal, (*NUMBER_RULES, *RULES)):
            self.due[max(map(self._set_at, rule.reads))].append(rule)
        self.shaped = max(map(self._set_at, SHAPE_READS))
        sizes = [len(space.axes[axis]) for axis in self.order]
        self.below = [math.prod(sizes[depth:]) for depth in range(len(sizes) + 1)]

    def _is_single(self, axis: str) -> bool:
        """Whether an axis has one value and no other of the sweep sets it, too."""
        others = (axes_set_by(other) for other in self.space.axes if other != axis)
        return len(self.space.axes[axis]) == 1 and axis not in frozenset().union(*others)

    def _set_at(self, axis: str) -> int:
        """Return how many axes of the order are set when an axis has its last value."""
        setters = [
            place for place, setter in enumerate(self.order, 1) if axis in axes_set_by(setter)
        ]
        if setters:
            return max(setters)
        return self.leading if axis in MOVING_AXES and axis not in self.fixed else 0

    def visit(self, spec: Spec, shapes: tuple[Shape, ...], depth: int) -> None:
        """Plan all combinations on shapes that begin with `spec`, whose first `depth` are set."""
        if depth == self.leading:
            spec = follow(spec, self.base, self.named)
        for rule in self.due[depth]:
            if rule.refuses(spec):
                self.made.refused[rule.name] += self.below[depth] * len(shapes)
                return
        if depth == self.shaped:
            shapes = tuple(shape for shape in shapes if self._fits(spec, *shape))
        if depth == len(self.order):
            for rows, cols in shapes:
                self._keep(Point(spec, rows, cols, self.named))
        elif shapes:
            axis = self.order[depth]
            for value in self.space.axes[axis]:
                is_set = getattr(spec, axis) is value
                self.visit(spec if is_set else spec.replace(**{axis: value}), shapes, depth + 1)

    def _fits(self, spec: Spec, rows: int, cols: int) -> bool:
        for check, _ in refusals_for(spec, rows, cols):
            self.made.refused[name_of(check)] += self.below[self.shaped]
            return False
        return True

    def _keep(self, point: Point) -> None:
        made = self.made
        if self.where and not self.where(point):
            made.filtered += 1
            return
        known = len(self.seen)
        items = point.spec.items_on(point.cols)
        self.seen.add((*_values_of(point.spec), items, point.rows, point.cols))
        if len(self.seen) == known:
            made.merged += 1
            return
        made.points.append(point)
        if len(made.points) > MAX_POINTS:
            raise UsageError(
                f"the sweep has more than {MAX_POINTS} points; give its axes fewer values or "
                "narrow it with a condition"
            )
