"""What the report could not isolate: pairs of variants that differ in one thing, and what it says.

Times of two variants say little while several things differ. Each comparison here leaves one thing
out; the ratio of its paired times is what that thing costs.
"""

from __future__ import annotations

import functools
from pathlib import Path

import msgspec

from kgen.shape import Shape
from kgen.studies.facts import Metric
from kgen.studies.tables import Study


class Comparison(msgspec.Struct, frozen=True):
    """Two variants on a shape, `differ` in words, and what a / b below and above 1 mean."""

    a: str
    b: str
    shape: Shape
    differ: str
    less: str
    more: str


class Dissection(msgspec.Struct, frozen=True):
    """A question, the comparisons that answer it, and profiled metrics that stand beside them."""

    study: Study
    title: str
    question: str
    comparisons: tuple[Comparison, ...]
    metrics: tuple[Metric, ...] = ()

    @property
    def profiled(self) -> tuple[tuple[str, int, int], ...]:
        """The variants and shapes whose profiles stand beside the ratios, each once."""
        pairs = self.comparisons if self.metrics else ()
        jobs = [(variant, *pair.shape) for pair in pairs for variant in (pair.b, pair.a)]
        return tuple(dict.fromkeys(jobs))


@functools.cache
def all_dissections() -> tuple[Dissection, ...]:
    """Return the dissections of all studies."""
    text = Path(__file__).with_name("dissections.toml").read_bytes()
    return msgspec.toml.decode(text, type=dict[str, tuple[Dissection, ...]])["dissections"]


def dissections(studies: frozenset[Study]) -> tuple[Dissection, ...]:
    """Return the dissections that belong to some studies."""
    return tuple(dissection for dissection in all_dissections() if dissection.study in studies)
