"""What a broken rule is, and the registers of all rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kgen.specs.spec import Spec


@dataclass(frozen=True)
class Problem:
    """One broken rule: the axes that clash, and a sentence that says what to change."""

    axes: tuple[str, ...]
    message: str


Check = Callable[[Spec], Iterator[Problem]]
ShapeCheck = Callable[[Spec, int, int], Iterator[Problem]]


@dataclass(frozen=True)
class Rule:
    """A rule on the spec alone: what checks it, and the axes that decide whether it is broken.

    A sweep asks a rule as soon as these axes are set, and leaves out at once what it refuses.
    """

    check: Check
    reads: frozenset[str]

    @property
    def name(self) -> str:
        """What the rule demands, in words."""
        return name_of(self.check)


RULES: list[Rule] = []
# Rules on single numbers. The others compute with these, so they are asked only when these agree.
NUMBER_RULES: list[Rule] = []
# Rules on a valid spec and a non-empty matrix.
SHAPE_RULES: list[ShapeCheck] = []


def rule(*reads: str) -> Callable[[Check], Check]:
    """Register a rule on the spec alone that these axes decide."""
    return _register(RULES, reads)


def number_rule(*reads: str) -> Callable[[Check], Check]:
    """Register a rule on a number, which other rules compute with."""
    return _register(NUMBER_RULES, reads)


def _register(rules: list[Rule], reads: tuple[str, ...]) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        rules.append(Rule(check, frozenset(reads)))
        return check

    return register


def shape_rule(check: ShapeCheck) -> ShapeCheck:
    """Register a rule on a spec together with the shape of the matrix."""
    SHAPE_RULES.append(check)
    return check


def name_of(check: Check | ShapeCheck) -> str:
    """Return what a rule demands, in words: the name of its function."""
    return check.__name__.replace("_", " ")
