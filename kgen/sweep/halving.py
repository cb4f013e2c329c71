"""Which candidates of a sweep stay: few rounds for all of them, many for the finalists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kgen.errors import UsageError
from kgen.text import did_you_mean


class Search(StrEnum):
    """How a sweep spends its time on a shape.

    `halving` gives all candidates a few rounds, and the faster ones more; `full` gives all of them
    as many as the protocol asks for; `model` lets a sampler of Optuna choose what to try at all.
    """

    HALVING = "halving"
    FULL = "full"
    MODEL = "model"


@dataclass(frozen=True)
class Halving:
    """The schedule: `first_rounds` for all, then the fastest 1/`factor` get `growth` times as many.

    Whoever is within `margin` of the fastest stays, and so do the fastest `finalists`; once no more
    than these are left, they are measured until the protocol is satisfied.
    """

    first_rounds: int = 2
    factor: int = 4
    growth: int = 2
    finalists: int = 8
    margin: float = 0.02

    def survivors(self, samples: Mapping[str, Sequence[float]]) -> list[str]:
        """Return the candidates that stay, fastest first, given the samples of all.

        Of so few samples the least counts: what disturbs a sample makes it longer.
        """
        least = {name: min(taken) for name, taken in samples.items()}
        ranked = sorted(least, key=lambda name: least[name])
        stay = max(-(-len(ranked) // self.factor), self.finalists)
        limit = (1 + self.margin) * min(least.values(), default=0.0)
        return ranked[:stay] + [name for name in ranked[stay:] if least[name] <= limit]

    def is_over(self, before: int, after: int) -> bool:
        """Tell whether a rung left so few, or dropped so few, that the rest are the finalists."""
        return after <= self.finalists or after == before


def find_search(name: str) -> Search:
    """Return a search by name. Raises UsageError for an unknown one."""
    if name not in list(Search):
        raise UsageError(f"there is no search {name!r}{did_you_mean(name, Search)}")
    return Search(name)
