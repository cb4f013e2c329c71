"""What a statement of a study is made of: parts, each with the rule that judges it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kgen.studies.facts import Metric
from kgen.studies.tables import Study

Shape = tuple[int, int]


@dataclass(frozen=True)
class Timed:
    """A part about the times of two variants on a shape, judged by their paired ratio a / b."""

    words: str
    rule: Literal["faster", "not_faster", "about", "same"]
    a: str
    b: str
    shape: Shape
    ratio: float = 1
    tolerance: float = 0


@dataclass(frozen=True)
class Fact:
    """A part about something that has no noise: a metric of a, or its quotient a / b if b is given.

    `relation` and `value` are as `verdicts.compare` takes them.
    """

    words: str
    metric: Metric
    a: str
    b: str
    shape: Shape
    relation: str
    value: float
    tolerance: float = 0


@dataclass(frozen=True)
class Crossing:
    """A part about where, over the row length, a stops being faster than b: between two lengths."""

    words: str
    a: str
    b: str
    rows: int
    lengths: tuple[int, ...]
    between: tuple[int, int]


Part = Timed | Fact | Crossing


@dataclass(frozen=True)
class Statement:
    """A numbered statement of a study; it holds if all of its parts do."""

    number: int
    study: Study
    words: str
    parts: tuple[Part, ...]
