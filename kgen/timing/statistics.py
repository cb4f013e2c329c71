"""What samples of times allow to say: medians, ratios and ties, with their uncertainty.

Every interval is one of order statistics: it holds whatever the samples' distribution is, so a few
spikes of a busy machine neither widen it much nor move it. Samples are independent rounds; samples
of several candidates are paired when they come from the same rounds in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb, isfinite

import numpy as np

# An interval misses the median at most this often: one time in so many.
MISSES_ONE_IN = 20


@dataclass(frozen=True)
class Summary:
    """The samples of one candidate, in their own unit.

    `low` and `high` bound the median with at least 95% confidence; of fewer than six samples they
    are the least and the largest, which bound it less often.
    """

    median: float
    low: float
    high: float
    mean: float
    least: float
    largest: float

    @property
    def relative_spread(self) -> float:
        """Half the interval's width over the median: 0.01 means that the median is known to 1%."""
        return (self.high - self.low) / 2 / self.median


@dataclass(frozen=True)
class Ratio:
    """The median of a quotient over the rounds, with an interval as in `Summary`."""

    median: float
    low: float
    high: float

    @property
    def contains_one(self) -> bool:
        """Whether the two are not distinguishable: 1 is within the interval."""
        return self.low <= 1 <= self.high


def summarize(samples: Sequence[float]) -> Summary:
    """Return the statistics of samples, all positive, in any unit.

    Raises ValueError when there is none, or one is not a positive number.
    """
    values = _positive(samples)
    median, low, high = _interval(values)
    return Summary(
        median, low, high, float(values.mean()), float(values.min()), float(values.max())
    )


def paired_ratio(a: Sequence[float], b: Sequence[float]) -> Ratio:
    """Return a / b, taken round by round, so that a drift common to both cancels.

    Raises ValueError when the numbers of rounds differ, or a sample is not a positive number.
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} and {len(b)} samples are not of the same rounds")
    return Ratio(*_interval(_positive(a) / _positive(b)))


def ties(samples_by_name: Mapping[str, Sequence[float]]) -> frozenset[str]:
    """Return the names that the fastest, by its median, is not distinguishably faster than.

    The fastest itself is one of them. The samples are paired. Raises ValueError as `paired_ratio`.
    """
    if not samples_by_name:
        return frozenset()
    fastest = min(samples_by_name.values(), key=lambda samples: summarize(samples).median)
    return frozenset(
        name for name, samples in samples_by_name.items() if paired_ratio(samples, fastest).low <= 1
    )


def drift(samples: Sequence[float]) -> float:
    """Return how much the last third's median differs from the first's, relative to the first's.

    0.05 means that the last third was 5% slower. Fewer than three samples have no drift: 0.
    """
    values = _positive(samples)
    third = len(values) // 3
    if not third:
        return 0.0
    first = float(np.median(values[:third]))
    return float(np.median(values[-third:])) / first - 1


def _positive(samples: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    values = np.asarray(samples, dtype=np.float64)
    if not len(values):
        raise ValueError("there are no samples")
    if not all(isfinite(value) and value > 0 for value in values.tolist()):
        raise ValueError("a sample is not a positive number")
    return values


def _interval(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float, float]:
    """Return the median and the order statistics that bound it."""
    ordered = np.sort(values)
    outside = _outside(len(ordered))
    return float(np.median(ordered)), float(ordered[outside]), float(ordered[-1 - outside])


@lru_cache
def _outside(count: int) -> int:
    """Return how many of `count` ordered samples the interval leaves out at either end.

    A sample is below the median like a coin shows heads, so the interval misses on one side with
    the chance that at most `outside` of `count` tosses are heads.
    """
    allowed = 2**count // (2 * MISSES_ONE_IN)
    outside = 0
    chances = 1  # of at most `outside` heads, in 2^count-ths
    while (chances := chances + comb(count, outside + 1)) <= allowed:
        outside += 1
    return outside
