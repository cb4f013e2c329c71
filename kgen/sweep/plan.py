"""The plan of a sweep: the points that can run, and what left the others out."""

from __future__ import annotations

import math
import operator
from collections import Counter
from dataclasses import dataclass, field

from kgen.errors import UsageError
from kgen.specs.rules import NUMBER_RULES, RULES, Rule, name_of, refusals_for
from kgen.specs.spec import AXES, Spec
from kgen.specs.variants import LEADING_AXES, STAYING_AXES, follow, settings, spelling
from kgen.sweep.space import Space
from kgen.sweep.where import Where

# Each point takes about a kilobyte while it is planned.
MAX_POINTS = 2_000_000


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel on one shape. `auto` items in `spec` stand for what the row needs."""

    spec: Spec
    rows: int
    cols: int

    @property
    def variant(self) -> str:
        """The kernel as a user types it."""
        return spelling(self.spec)

    @property
    def resolved(self) -> Spec:
        """The spec of the kernel that runs: `auto` items replaced by their number."""
        return self.spec.resolve(self.cols)


@dataclass
class Plan:
    """What of a sweep can run, and how many of its `combinations` were left out, and why.

    `refused` counts by the rule that refused them, in words; `filtered` did not meet the sweep's
    condition, and `merged` were the same kernel on the same shape as an earlier point.
    """

    points: list[Point] = field(default_factory=list)
    combinations: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    filtered: int = 0
    merged: int = 0


def plan(*spaces: Space) -> Plan:
    """Return the points of the spaces that can run, in the order of the spaces and their variants.

    Of points that are the same kernel on the same shape, whatever version they are spelt from, the
    first stays. Raises UsageError when a space has no variant, when its condition has no value at a
    point, or when more points than MAX_POINTS are left.
    """
    made, seen = Plan(), set[Identity]()
    for space in spaces:
        if not space.variants:
            raise UsageError("the sweep has no variant; name some, such as v5 and v7")
        made.combinations += space.combinations
        for variant in space.variants:
            walk = _Walk(space, variant, made, seen)
            walk.visit(walk.start, 0)
    return made


# What tells kernels on shapes apart: every axis of the resolved spec, rows and cols.
Identity = tuple[object, ...]
_values_of = operator.attrgetter(*AXES, "own")


class _Walk:
    """Goes through the combinations of one variant, one axis after the other.

    The axes that others follow come first; once they are set, the others follow. A rule is asked
    as soon as the axes that it reads are set, and refuses all combinations that begin so at once.
    """

    def __init__(self, space: Space, variant: str, made: Plan, seen: set[Identity]) -> None:
        self.space, self.shapes, self.made, self.seen = space, space.shapes, made, seen
        self.where = Where(space.where) if space.where else None
        self.base, self.fixed = settings(variant)
        self.start = self.base.replace(**self.fixed)
        self.named = frozenset(self.fixed) | space.axes.keys()
        self.order = sorted(space.axes, key=lambda axis: axis not in LEADING_AXES)
        self.leading = len(LEADING_AXES & space.axes.keys())
        self.due: list[list[Rule]] = [[] for _ in range(len(self.order) + 1)]
        for rule in (*NUMBER_RULES, *RULES):
            self.due[max(map(self._set_at, rule.reads))].append(rule)
        sizes = [len(space.axes[axis]) for axis in self.order] + [len(self.shapes)]
        self.below = [math.prod(sizes[depth:]) for depth in range(len(sizes))]

    def _set_at(self, axis: str) -> int:
        """Return how many axes of the order are set when an axis has its last value."""
        if axis in self.order:
            return self.order.index(axis) + 1
        return 0 if axis in self.fixed or axis in STAYING_AXES else self.leading

    def visit(self, spec: Spec, depth: int) -> None:
        """Plan all combinations that begin with `spec`, whose first `depth` axes are set."""
        if depth == self.leading:
            spec = follow(spec, self.base, self.named)
        for rule in self.due[depth]:
            for _ in rule.check(spec):
                self.made.refused[rule.name] += self.below[depth]
                return
        if depth == len(self.order):
            self._keep(spec)
            return
        axis = self.order[depth]
        for value in self.space.axes[axis]:
            self.visit(spec.replace(**{axis: value}), depth + 1)

    def _keep(self, spec: Spec) -> None:
        for rows, cols in self.shapes:
            for check, _ in refusals_for(spec, rows, cols):
                self.made.refused[name_of(check)] += 1
                break
            else:
                self._keep_once(Point(spec, rows, cols))

    def _keep_once(self, point: Point) -> None:
        made = self.made
        if self.where and not self.where(point):
            made.filtered += 1
            return
        known = len(self.seen)
        self.seen.add((*_values_of(point.resolved), point.rows, point.cols))
        if len(self.seen) == known:
            made.merged += 1
            return
        made.points.append(point)
        if len(made.points) > MAX_POINTS:
            raise UsageError(
                f"the sweep has more than {MAX_POINTS} points; give its axes fewer values or "
                "narrow it with a condition"
            )
