"""Crossovers of ratios whose crossing is known."""

from __future__ import annotations

from math import inf

import pytest

from kgen.studies.claims import Crossing, all_statements
from kgen.studies.crossover import crossings_of
from kgen.studies.judge import judge_crossing
from kgen.studies.verdicts import Conclusion
from kgen.timing.statistics import Ratio

LENGTHS = (64, 128, 256, 512, 1024, 2048)


def power(at: float, slope: float = 0.3, spread: float = 0.05) -> dict[int, Ratio]:
    """Return ratios that are a power of the length, so that interpolation is exact."""
    values = {n: (n / at) ** slope for n in LENGTHS}
    return {n: Ratio(v, v * (1 - spread), v * (1 + spread)) for n, v in values.items()}


def test_a_power_law_crosses_where_it_does() -> None:
    (found,) = crossings_of("a", "b", power(300))
    assert found.faster_below == "a"
    assert found.at == pytest.approx(300)
    # The ends of the interval cross where (n / 300)^0.3 is 1 / 1.05 and 1 / 0.95.
    assert found.low == pytest.approx(300 * 1.05 ** (-1 / 0.3))
    assert found.high == pytest.approx(300 * 0.95 ** (-1 / 0.3))


def test_noise_widens_over_several_lengths() -> None:
    (found,) = crossings_of("a", "b", power(300, spread=0.3))
    assert found.low is not None and found.low < 128 and found.high and found.high > 512


def test_the_other_way_round_is_the_same_crossing() -> None:
    (rising,) = crossings_of("a", "b", power(300))
    inverse = {n: Ratio(1 / r.median, 1 / r.high, 1 / r.low) for n, r in power(300).items()}
    (falling,) = crossings_of("b", "a", inverse)
    assert falling.faster_below == "a"
    assert (falling.at, falling.low, falling.high) == pytest.approx(
        (rising.at, rising.low, rising.high)
    )


def test_ends_that_are_not_known_are_open() -> None:
    (found,) = crossings_of("a", "b", power(80))
    assert found.low is None or found.low < 80
    (found,) = crossings_of("a", "b", power(80, spread=0.2))
    assert found.low is None and found.high is not None
    (found,) = crossings_of("a", "b", power(1900, spread=0.2))
    assert found.low is not None and found.high is None


@pytest.mark.parametrize("at", [1.0, 1e6])
def test_no_crossing(at: float) -> None:
    assert crossings_of("a", "b", power(at)) == []


def test_every_crossing_is_told() -> None:
    ratios = {
        n: Ratio(v, v - 0.01, v + 0.01)
        for n, v in zip(LENGTHS, (0.8, 1.2, 0.8, 0.7, 1.5, 2), strict=True)
    }
    found = crossings_of("a", "b", ratios)
    assert [one.faster_below for one in found] == ["a", "b", "a"]
    for one, left in zip(found, (64, 128, 512), strict=True):
        assert one.low and one.high
        assert left < one.low < one.at < one.high < 2 * left


@pytest.mark.parametrize(
    ("at", "spread", "verdict"),
    [
        (600, 0.05, Conclusion.HOLDS),
        (270, 0.05, Conclusion.NOISE),  # its interval begins below 257
        (100, 0.05, Conclusion.FAILS),  # a crossing, and not there
        (1, 0.05, Conclusion.FAILS),  # slower everywhere
        (1e6, 0.05, Conclusion.FAILS),  # faster everywhere
        (600, 0.5, Conclusion.NOISE),
    ],
)
def test_the_verdict_on_a_crossover(at: float, spread: float, verdict: Conclusion) -> None:
    part = next(p for s in all_statements() for p in s.parts if isinstance(p, Crossing))
    judged = judge_crossing(part, power(at, spread=spread))
    assert judged.verdict is verdict
    if judged.figure:
        assert judged.figure.median == pytest.approx(at)
        assert judged.figure.low < at < judged.figure.high < inf


def test_a_crossing_in_the_other_direction_is_none() -> None:
    part = next(p for s in all_statements() for p in s.parts if isinstance(p, Crossing))
    assert judge_crossing(part, power(600, slope=-0.3)).verdict is Conclusion.FAILS
