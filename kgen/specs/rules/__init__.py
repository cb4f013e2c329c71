"""The rules that tell valid specs from invalid ones, each stated once.

A rule is a function that yields a `Problem` for every way in which a spec breaks it. A problem
names the values and what to change, and stands for something physically or logically impossible.
"""

from __future__ import annotations

from kgen.errors import UsageError
from kgen.specs.rules import accesses, elements  # noqa: F401  (their rules register themselves)
from kgen.specs.rules.problem import NUMBER_RULES, RULES, Problem, Rule, name_of
from kgen.specs.rules.shapes import (
    MAX_DIMENSION,
    SHAPE_READS,
    problems_for,
    refusals_for,
    static_shared_bytes,
    usual_shape,
)
from kgen.specs.rules.threads import natural_topology
from kgen.specs.spec import Spec

__all__ = [
    "MAX_DIMENSION",
    "NUMBER_RULES",
    "RULES",
    "SHAPE_READS",
    "Problem",
    "Rule",
    "name_of",
    "natural_topology",
    "problems",
    "problems_for",
    "refusals_for",
    "require_valid",
    "static_shared_bytes",
    "usual_shape",
]


def problems(spec: Spec) -> list[Problem]:
    """Return every rule that the spec breaks; none means that the spec is valid."""
    found = [problem for rule in NUMBER_RULES for problem in rule.check(spec)]
    return found or [problem for rule in RULES for problem in rule.check(spec)]


def require_valid(spec: Spec, rows: int | None = None, cols: int | None = None) -> None:
    """Raise UsageError with the sentence of every rule that the spec (on the shape) breaks."""
    found = problems(spec)
    if not found and rows is not None and cols is not None:
        found = problems_for(spec, rows, cols)
    if found:
        raise UsageError("; ".join(dict.fromkeys(problem.message for problem in found)))
