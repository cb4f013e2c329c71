"""Who won on a shape: the rows of a run, the best of each kind, and ratios between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from kgen.store.measurement import Kind, Measurement, Outcome
from kgen.timing.statistics import Ratio, paired_ratio

TORCH = "torch"


@dataclass(frozen=True)
class Contest:
    """The rows of one run on one shape: their samples are paired."""

    rows: int
    cols: int
    entries: tuple[Measurement, ...]

    @property
    def shape(self) -> str:
        """The shape in words."""
        return f"{self.rows} x {self.cols}"

    @cached_property
    def timed(self) -> list[Measurement]:
        """The rows with times, the fastest first."""
        return sorted(filter(_has_times, self.entries), key=median)

    @property
    def untimed(self) -> list[Measurement]:
        """The other rows."""
        return [row for row in self.entries if not _has_times(row)]

    def best(self, kind: Kind) -> Measurement | None:
        """Return the fastest of a kind, of those that stayed longest: few samples may flatter."""
        rows = [row for row in self.timed if row.kind is kind]
        return min(rows, key=lambda row: (-len(row.samples_us), median(row)), default=None)

    def named(self, kind: Kind, name: str) -> Measurement | None:
        """Return the row of that name, if it has times."""
        rows = (row for row in self.timed if (row.kind, row.variant) == (kind, name))
        return next(rows, None)

    def ranks(self) -> dict[tuple[Kind, str], str]:
        """Return the ranks by kind and name; all that tie with the fastest are `1 =`.

        Copies have none, nor has what left before the last round.
        """
        runners = [row for row in self.timed if row.kind is not Kind.COPY]
        rounds = max((len(row.samples_us) for row in runners), default=0)
        runners = [row for row in runners if len(row.samples_us) == rounds]
        first = "1 =" if sum(row.is_tied is True for row in runners) > 1 else "1"
        return {
            (row.kind, row.variant): first if row.is_tied else str(place)
            for place, row in enumerate(runners, start=1)
        }


def contests(measured: Iterable[Measurement]) -> list[Contest]:
    """Return the contests of a file by shape; a shape of several runs has one for each."""
    runs: dict[tuple[int, int, str, str], list[Measurement]] = {}
    for row in measured:
        origin = row.provenance
        runs.setdefault((row.rows, row.cols, origin.measured_at, origin.run), []).append(row)
    return [Contest(key[0], key[1], tuple(runs[key])) for key in sorted(runs)]


def _has_times(row: Measurement) -> bool:
    return row.outcome is Outcome.OK and bool(row.samples_us)


def median(row: Measurement) -> float:
    """Return the median of a row that has times."""
    assert row.median_us is not None
    return row.median_us


def spread(row: Measurement) -> float:
    """Return half of the median's interval in percent of it."""
    assert row.low_us is not None and row.high_us is not None
    return 50 * (row.high_us - row.low_us) / median(row)


def ratio(a: Measurement, b: Measurement) -> Ratio:
    """Return a's time over b's; of one that left early, the rounds that both had."""
    common = min(len(a.samples_us), len(b.samples_us))
    return paired_ratio(a.samples_us[:common], b.samples_us[:common])
