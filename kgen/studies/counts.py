"""The loads and stores that the report measured, beside those that the CPU executor counts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kgen.errors import KgenError
from kgen.studies.facts import Facts, Metric


@dataclass(frozen=True)
class Accesses:
    """Global loads and stores of a variant on a shape, in warp instructions.

    `own_loads` and `own_stores` are what was counted here; without them there is the reason.
    """

    variant: str
    rows: int
    cols: int
    loads: int
    stores: int
    own_loads: int | None = None
    own_stores: int | None = None
    reason: str = ""

    @property
    def agrees(self) -> bool:
        """Whether both were counted and are the report's."""
        return (self.own_loads, self.own_stores) == (self.loads, self.stores)


REPORTED = (
    Accesses("v2", 128, 4096, 49_152, 16_384),
    Accesses("v3", 128, 4096, 16_384, 16_384),
    Accesses("v5", 1024, 4096, 262_144, 131_072),
    Accesses("v6", 1024, 4096, 163_840, 131_072),
    Accesses("v6_double", 1024, 4096, 65_536, 32_768),
    Accesses("v7", 1024, 4096, 32_768, 32_768),
    Accesses("v5", 1025, 257, 18_450, 9_225),
    Accesses("v8", 1025, 257, 18_450, 9_225),
)


def count_reported(facts: Facts) -> tuple[Accesses, ...]:
    """Return the report's counts with our own; a reason where they cannot be counted."""
    return tuple(_count(row, facts) for row in REPORTED)


def _count(row: Accesses, facts: Facts) -> Accesses:
    shape = (row.variant, row.rows, row.cols)
    try:
        loads, stores = (facts.value(metric, *shape) for metric in (Metric.LOADS, Metric.STORES))
    except KgenError as error:
        return replace(row, reason=str(error))
    return replace(row, own_loads=int(loads), own_stores=int(stores))
