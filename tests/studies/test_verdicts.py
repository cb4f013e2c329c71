"""The rules, on samples that hold, fall, and cannot tell."""

from __future__ import annotations

import numpy as np
import pytest

from kgen.studies import verdicts
from kgen.studies.verdicts import Conclusion, Judgement, all_of, judge_fact
from kgen.timing.statistics import Ratio, paired_ratio

HOLDS, FAILS, NOISE, UNKNOWN = (
    Conclusion.HOLDS,
    Conclusion.FAILS,
    Conclusion.NOISE,
    Conclusion.UNKNOWN,
)


def ratio_of(truth: float, noise: float = 0.002, rounds: int = 60) -> Ratio:
    """Return the paired ratio of two candidates whose true ratio is known, on a clock that ramps."""
    rng = np.random.default_rng(3)
    ramp = np.linspace(1, 1.3, rounds)
    a, b = (us * ramp * rng.lognormal(0, noise, rounds) for us in (truth * 50, 50))
    return paired_ratio(a, b)


@pytest.mark.parametrize(
    ("truth", "noise", "verdict"),
    [(0.985, 0.002, HOLDS), (1.015, 0.002, FAILS), (0.999, 0.05, NOISE), (1.001, 0.05, NOISE)],
)
def test_faster(truth: float, noise: float, verdict: Conclusion) -> None:
    judged = verdicts.faster(ratio_of(truth, noise))
    assert judged.verdict is verdict
    assert judged.figure and judged.figure.low <= truth <= judged.figure.high


@pytest.mark.parametrize(
    ("truth", "noise", "verdict"),
    [
        (1.02, 0.002, HOLDS),
        (1.0, 0.002, HOLDS),  # a tie that is close enough to be one
        (0.98, 0.002, FAILS),
        (0.995, 0.0002, FAILS),  # faster by little, but for certain
        (1.0, 0.1, NOISE),
    ],
)
def test_not_faster(truth: float, noise: float, verdict: Conclusion) -> None:
    assert verdicts.not_faster(ratio_of(truth, noise)).verdict is verdict


@pytest.mark.parametrize(
    ("truth", "noise", "verdict"),
    [
        (1.7, 0.01, HOLDS),
        (1.95, 0.01, HOLDS),
        (1.2, 0.01, FAILS),
        (2.3, 0.01, FAILS),
        (2.04, 0.05, NOISE),
        (1.7, 1.5, NOISE),
    ],
)
def test_about(truth: float, noise: float, verdict: Conclusion) -> None:
    assert verdicts.about(ratio_of(truth, noise), 1.7, 0.2).verdict is verdict


@pytest.mark.parametrize(
    ("truth", "noise", "verdict"),
    [
        (1.022, 0.002, HOLDS),
        (0.98, 0.002, HOLDS),
        (1.06, 0.002, FAILS),
        (0.95, 0.002, FAILS),
        (1.03, 0.02, NOISE),
    ],
)
def test_same(truth: float, noise: float, verdict: Conclusion) -> None:
    assert verdicts.same(ratio_of(truth, noise), 0.03).verdict is verdict


@pytest.mark.parametrize(
    ("value", "relation", "expected", "holds"),
    [
        (0.9, "<", 1, True), (1, "<", 1, False), (1, "<=", 1, True), (2, "<=", 1, False),
        (100, "=", 100, True), (99.9, "=", 100, False), (2, ">", 1, True), (1, ">", 1, False),
        (1, ">=", 1, True), (0, ">=", 1, False),
    ],
)  # fmt: skip
def test_facts(value: float, relation: str, expected: float, holds: bool) -> None:
    judged = judge_fact(value, relation, expected)
    assert judged == Judgement(HOLDS if holds else FAILS, Ratio(value, value, value))


@pytest.mark.parametrize(("value", "verdict"), [(0.27, HOLDS), (0.24, HOLDS), (0.3, FAILS)])
def test_facts_are_about_something(value: float, verdict: Conclusion) -> None:
    assert judge_fact(value, "about", 0.26, 0.1).verdict is verdict


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ((HOLDS, HOLDS), HOLDS),
        ((HOLDS, NOISE), NOISE),
        ((NOISE, UNKNOWN, HOLDS), UNKNOWN),
        ((UNKNOWN, FAILS, NOISE), FAILS),
    ],
)
def test_a_statement_is_as_good_as_its_worst_part(
    parts: tuple[Conclusion, ...], whole: Conclusion
) -> None:
    assert all_of(parts) is whole
