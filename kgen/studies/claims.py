"""The statements of the studies, which are data, and what they are made of."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Literal

import msgspec

from kgen.shape import Shape
from kgen.studies.facts import Metric
from kgen.studies.tables import Study


class Timed(msgspec.Struct, frozen=True, tag_field="kind", tag="time"):
    """A part about the times of two variants on a shape, judged by their paired ratio a / b."""

    words: str
    rule: Literal["faster", "not_faster", "about", "same"]
    a: str
    b: str
    shape: Shape
    ratio: float = 1
    tolerance: float = 0


class Fact(msgspec.Struct, frozen=True, tag_field="kind", tag="fact"):
    """A part about something that has no noise: a metric of a, or its quotient a / b if b is given.

    `relation` and `value` are as `verdicts.judge_fact` takes them.
    """

    words: str
    metric: Metric
    a: str
    shape: Shape
    relation: str
    value: float
    b: str = ""
    tolerance: float = 0


class Crossing(msgspec.Struct, frozen=True, tag_field="kind", tag="crossing"):
    """A part about where, over the row length, a stops being faster than b: between two lengths."""

    words: str
    a: str
    b: str
    rows: int
    lengths: tuple[int, ...]
    between: tuple[int, int]


Part = Timed | Fact | Crossing


class Statement(msgspec.Struct, frozen=True):
    """A numbered statement of a study; it holds if all of its parts do."""

    number: int
    study: Study
    words: str
    parts: tuple[Part, ...]


@functools.cache
def all_statements() -> tuple[Statement, ...]:
    """Return the statements of all studies, by their numbers."""
    text = Path(__file__).with_name("statements.toml").read_bytes()
    return msgspec.toml.decode(text, type=dict[str, tuple[Statement, ...]])["statements"]


def statements(studies: frozenset[Study]) -> tuple[Statement, ...]:
    """Return the statements of some studies, by their numbers."""
    return tuple(statement for statement in all_statements() if statement.study in studies)
