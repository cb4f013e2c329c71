"""Statistics of times, on samples whose truth is known."""

import math

import numpy as np
import pytest
from scipy import stats

from kgen.timing.statistics import _outside, drift, paired_ratio, summarize, ties

ROUNDS = 60


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def noisy(rng, median, rounds=ROUNDS, noise=0.01):
    return median * rng.lognormal(0, noise, rounds)


def spiked(samples, rng):
    """10% of the rounds take ten times as long."""
    samples = samples.copy()
    samples[rng.choice(len(samples), len(samples) // 10, replace=False)] *= 10
    return samples


def test_summary_of_known_samples():
    summary = summarize([5.0, 1.0, 4.0, 2.0, 3.0, 9.0])
    assert (summary.median, summary.mean) == (3.5, 4.0)
    assert (summary.low, summary.high) == (summary.least, summary.largest) == (1.0, 9.0)
    assert summary.relative_spread == pytest.approx(4 / 3.5)


@pytest.mark.parametrize("count", [6, 7, 8, 9, 11, 12, 30, 31, 100, 999])
def test_interval_is_the_narrowest_of_95_percent(count):
    outside = _outside(count)
    assert 2 * stats.binom.cdf(outside, count, 0.5) <= 0.05
    assert 2 * stats.binom.cdf(outside + 1, count, 0.5) > 0.05


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_few_samples_give_the_least_and_the_largest(count):
    samples = [float(number) for number in range(1, count + 1)]
    summary = summarize(samples)
    assert (summary.low, summary.high) == (1.0, float(count))


@pytest.mark.parametrize("count", [6, 15, 40])
@pytest.mark.parametrize("kind", ["lognormal", "spikes", "two clocks"])
def test_interval_covers_the_median_in_95_percent_of_runs(rng, count, kind):
    noise = rng.lognormal(0, 0.3, (4000, count))
    if kind == "spikes":
        noise = np.where(rng.random(noise.shape) < 0.1, noise * 10, noise)
    if kind == "two clocks":
        noise = np.where(rng.random(noise.shape) < 0.7, noise, noise + 3)
    truth = {
        "lognormal": 1.0,
        # The quantile of the undisturbed samples that is the median of all, since few overlap.
        "spikes": math.exp(0.3 * stats.norm.ppf(0.5 / 0.9)),
        "two clocks": math.exp(0.3 * stats.norm.ppf(0.5 / 0.7)),
    }[kind]
    summaries = [summarize(row) for row in noise]
    covered = np.mean([summary.low <= truth <= summary.high for summary in summaries])
    assert covered >= 0.94


def test_spikes_move_neither_the_median_nor_a_verdict(rng):
    a, b = noisy(rng, 100), noisy(rng, 103)
    assert summarize(spiked(a, rng)).median == pytest.approx(100, rel=0.01)
    assert summarize(spiked(a, rng)).relative_spread < 0.01
    assert not paired_ratio(spiked(a, rng), spiked(b, rng)).contains_one


def test_a_ramp_of_the_clock_common_to_all_cancels(rng):
    ramp = np.linspace(1, 1.4, ROUNDS)
    a, b = noisy(rng, 100, noise=0.005) * ramp, noisy(rng, 101, noise=0.005) * ramp
    overlap = summarize(a).high > summarize(b).low
    ratio = paired_ratio(a, b)
    assert overlap and ratio.high < 1
    assert ratio.low <= 100 / 101 <= ratio.high
    assert ties({"a": a, "b": b}) == {"a"}
    assert drift(a) == pytest.approx(0.3, abs=0.06)


def test_opposite_results_are_no_tie_and_mirror_each_other(rng):
    fast, slow = noisy(rng, 100), noisy(rng, 140)
    assert paired_ratio(fast, slow).high < 1 < paired_ratio(slow, fast).low
    assert paired_ratio(slow, fast).median == pytest.approx(1.4, rel=0.01)
    assert ties({"slow": slow, "fast": fast}) == {"fast"}


def test_equals_are_ties(rng):
    samples = {"a": noisy(rng, 100), "b": noisy(rng, 100), "c": noisy(rng, 102)}
    assert ties(samples) == {"a", "b"}
    assert paired_ratio(samples["a"], samples["b"]).contains_one


def test_ties_of_one_of_none_and_of_the_same_samples():
    assert ties({}) == frozenset()
    assert ties({"only": [2.0]}) == {"only"}
    assert ties({"a": [1.0] * 10, "b": [1.0] * 10}) == {"a", "b"}


def test_rounds_that_disagree_are_a_tie():
    up_and_down = [100.0, 102.0] * 10
    assert paired_ratio(up_and_down, up_and_down[::-1]).contains_one


def test_one_round_is_reported_as_it_is():
    ratio = paired_ratio([2.0], [4.0])
    assert (ratio.median, ratio.low, ratio.high) == (0.5, 0.5, 0.5)


def test_drift_has_a_sign_and_needs_three():
    assert drift([10.0, 10.0, 9.0, 9.0, 8.0, 8.0]) == pytest.approx(-0.2)
    assert drift([1.0, 5.0]) == 0


@pytest.mark.parametrize("samples", [[], [1.0, 0.0], [-1.0], [math.nan], [math.inf]])
def test_what_is_no_time_is_refused(samples):
    with pytest.raises(ValueError, match="sample"):
        summarize(samples)


def test_unpaired_samples_are_refused():
    with pytest.raises(ValueError, match="2 and 3 samples"):
        paired_ratio([1.0, 2.0], [1.0, 2.0, 3.0])
