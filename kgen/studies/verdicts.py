"""Rules that turn a measured ratio or figure into a verdict on a statement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from kgen.errors import KgenError
from kgen.timing.statistics import Ratio

# "No faster" tolerates this much: less than any difference that the studies speak of.
MARGIN = 0.01


class NotMeasured(KgenError):
    """Something that a verdict rests on is not there; the message says why."""


class Conclusion(StrEnum):
    """What can be said of a statement: it stands, it falls, or the measurement cannot tell."""

    HOLDS = "holds"
    FAILS = "does not hold"
    NOISE = "within noise"
    UNKNOWN = "not measured"


@dataclass(frozen=True)
class Judgement:
    """A verdict and the figure it rests on: a paired ratio of times, or a fact (`low` = `high`).

    A verdict of UNKNOWN has a reason instead of a figure.
    """

    verdict: Conclusion
    figure: Ratio | None = None
    reason: str = ""


def unknown(reason: str) -> Judgement:
    """Return the judgement of what was not measured."""
    return Judgement(Conclusion.UNKNOWN, reason=reason)


def faster(ratio: Ratio) -> Judgement:
    """Judge that a is faster than b by the ratio a / b: all of the interval is below 1."""
    return _between(ratio, 0, 1)


def not_faster(ratio: Ratio) -> Judgement:
    """Judge that a is no faster than b: a tie will do, if it is close enough to be one.

    It holds when a can be no more than MARGIN faster, and falls when a is faster for certain.
    """
    if ratio.high < 1:
        return Judgement(Conclusion.FAILS, ratio)
    return Judgement(Conclusion.HOLDS if ratio.low >= 1 - MARGIN else Conclusion.NOISE, ratio)


def about(ratio: Ratio, expected: float, tolerance: float) -> Judgement:
    """Judge that a / b is `expected`, give or take `tolerance` of it (0.2: 20%)."""
    return _between(ratio, expected * (1 - tolerance), expected * (1 + tolerance))


def same(ratio: Ratio, within: float) -> Judgement:
    """Judge that a and b take the same time: their ratio is within `within` of 1, either way."""
    return _between(ratio, 1 / (1 + within), 1 + within)


def _between(ratio: Ratio, least: float, most: float) -> Judgement:
    if least < ratio.low and ratio.high < most:
        return Judgement(Conclusion.HOLDS, ratio)
    outside = ratio.high < least or ratio.low > most
    return Judgement(Conclusion.FAILS if outside else Conclusion.NOISE, ratio)


def judge_fact(value: float, relation: str, expected: float, tolerance: float = 0) -> Judgement:
    """Judge a fact, which has no noise: `value` stands in the `relation` to `expected`.

    `relation` is one of < <= = >= > and about (within `tolerance` of `expected`, relative).
    """
    holds = {
        "<": value < expected,
        "<=": value <= expected,
        "=": value == expected,
        ">=": value >= expected,
        ">": value > expected,
        "about": abs(value - expected) <= tolerance * abs(expected),
    }[relation]
    return Judgement(Conclusion.HOLDS if holds else Conclusion.FAILS, Ratio(value, value, value))


def all_of(verdicts: Iterable[Conclusion]) -> Conclusion:
    """Return the verdict on a statement of several parts: the worst that one of them has."""
    found = set(verdicts)
    order = (Conclusion.FAILS, Conclusion.UNKNOWN, Conclusion.NOISE)
    return next((verdict for verdict in order if verdict in found), Conclusion.HOLDS)
