"""What a broken rule is, and the register of all rules on a spec alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kgen.specs.spec import Spec


@dataclass(frozen=True)
class Problem:
    """One broken rule: the axes that clash, and a sentence that says what to change."""

    axes: tuple[str, ...]
    message: str


Rule = Callable[[Spec], Iterator[Problem]]
RULES: list[Rule] = []
# Rules on single numbers. The others compute with these, so they are asked only when these agree.
NUMBER_RULES: list[Rule] = []


def rule(check: Rule) -> Rule:
    """Register a rule on the spec alone."""
    RULES.append(check)
    return check


def number_rule(check: Rule) -> Rule:
    """Register a rule on the numbers that other rules compute with."""
    NUMBER_RULES.append(check)
    return check
