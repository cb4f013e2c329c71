"""Rounds of samples: one of every candidate in shuffled order, until the medians are known."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kgen.timing.protocol import Protocol
from kgen.timing.statistics import summarize


@dataclass(frozen=True)
class Rounds:
    """Samples in microseconds by candidate, one a round; `interrupted` if a person ended them."""

    samples: dict[str, list[float]]
    interrupted: bool = False


def rounds(names: Sequence[str], protocol: Protocol) -> Iterator[list[str]]:
    """Yield the candidates to sample next: a round of all, or of one where not interleaved."""
    shuffle = random.Random(protocol.seed).shuffle
    if not protocol.interleaved:
        yield from ([name] for name in names for _ in range(protocol.max_rounds))
        return
    for _ in range(protocol.max_rounds):
        order = list(names)
        shuffle(order)
        yield order


def is_settled(samples: Iterable[Sequence[float]], protocol: Protocol) -> bool:
    """Tell whether every candidate's median is known as precisely as the protocol asks."""
    return all(
        len(taken) >= protocol.min_rounds and summarize(taken).relative_spread <= protocol.precision
        for taken in samples
    )


def run_rounds(
    names: Sequence[str],
    protocol: Protocol,
    take: Callable[[str], float | None],
    keep: Callable[[Mapping[str, float]], None] = lambda round: None,
    earlier: Mapping[str, Sequence[float]] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Rounds:
    """Take samples by rounds and return them; `keep` gets each round when it is done.

    `take(name)` returns microseconds, or None if the candidate failed: it then drops out. An
    interrupt ends the rounds, and what was sampled in whole rounds is returned. The samples follow
    those of `earlier` rounds, which count as rounds that were done.
    """
    earlier = earlier or {}
    samples = {name: list(earlier.get(name, ())) for name in names}
    began = clock()
    try:
        for order in rounds(names, protocol):
            taken = {name: take(name) for name in order if name in samples}
            keep({name: us for name, us in taken.items() if us is not None})
            for name, us in taken.items():
                if us is None:
                    del samples[name]
                else:
                    samples[name].append(us)
            if _is_enough(samples, protocol, clock() - began):
                break
    except KeyboardInterrupt:
        if not any(samples.values()):
            raise
        return Rounds(samples, interrupted=True)
    return Rounds(samples)


def _is_enough(samples: Mapping[str, Sequence[float]], protocol: Protocol, spent_s: float) -> bool:
    if not protocol.interleaved:
        return False
    if not samples:
        return True
    done = min(len(taken) for taken in samples.values())
    return done >= protocol.min_rounds and (
        spent_s >= protocol.budget_s or is_settled(samples.values(), protocol)
    )
