"""The measurements of a reproduction, and ratios between them."""

from __future__ import annotations

from collections.abc import Iterable

from kgen.store.measurement import Measurement, Outcome
from kgen.studies.verdicts import NotMeasured
from kgen.timing.protocol import L2
from kgen.timing.statistics import Ratio, paired_ratio

L2_STATES = (L2.WARM, L2.COLD)


class Times:
    """Finds the measurement of a variant on a shape, with the L2 cache in one state.

    Measurements of one shape and state are of one interleaved run, so their samples are paired.
    `absent` is the reason for whatever is not there.
    """

    def __init__(self, measurements: Iterable[Measurement], absent: str) -> None:
        self.absent = absent
        self._found = {(m.variant, m.rows, m.cols, m.l2): m for m in measurements}

    def find(self, variant: str, rows: int, cols: int, l2: str) -> Measurement | None:
        """Return the measurement, whatever came of it."""
        return self._found.get((variant, rows, cols, l2))

    def ratio(self, a: str, b: str, rows: int, cols: int, l2: str) -> Ratio:
        """Return a's time over b's, paired by round. Raises NotMeasured with the reason."""
        first, second = (self._samples(name, rows, cols, l2) for name in (a, b))
        if len(first) != len(second):
            raise NotMeasured(f"{a} and {b} have {len(first)} and {len(second)} rounds in the run")
        return paired_ratio(first, second)

    def ratios(
        self, a: str, b: str, rows: int, lengths: Iterable[int], l2: str
    ) -> dict[int, Ratio]:
        """Return the ratios by row length, without the lengths that were not measured.

        Raises NotMeasured when none was, with the reason of the first.
        """
        found: dict[int, Ratio] = {}
        missing: list[NotMeasured] = []
        for cols in lengths:
            try:
                found[cols] = self.ratio(a, b, rows, cols, l2)
            except NotMeasured as reason:
                missing.append(reason)
        if missing and not found:
            raise missing[0]
        return found

    def _samples(self, variant: str, rows: int, cols: int, l2: str) -> tuple[float, ...]:
        measured = self.find(variant, rows, cols, l2)
        if measured is None:
            raise NotMeasured(self.absent)
        if measured.outcome is not Outcome.OK or not measured.samples_us:
            reason = measured.reason or "it has no samples"
            raise NotMeasured(f"{variant} at {rows} x {cols} was {measured.outcome}: {reason}")
        return measured.samples_us
