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


def rule(check: Rule) -> Rule:
    """Register a rule on the spec alone."""
    RULES.append(check)
    return check
