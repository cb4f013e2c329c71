"""The search for the fastest candidate on one shape, on one GPU."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol as Interface

from kgen.store.measurement import Kind, Measurement
from kgen.sweep.guided import TryOut
from kgen.sweep.halving import Halving, Search
from kgen.sweep.rows import ENOUGH_SAMPLES
from kgen.timing.bench import Bench, Record
from kgen.timing.candidates import Candidate
from kgen.timing.rounds import Rounds
from kgen.timing.statistics import summarize

# So many candidates are loaded at the same time before the slower ones are dropped again.
CHUNK = 128
Samples = dict[str, list[float]]


class Watcher(Interface):
    """Who is told of every step: what a progress bar shows."""

    def prepared(self, row: Measurement) -> None: ...
    def sampled(self, name: str, samples_us: Sequence[float]) -> None: ...
    def finished(self, row: Measurement) -> None: ...


class ShapeSearch:
    """Verifies and times the candidates of one shape, and records a row of each.

    `earlier` are samples of a run that was cut short; they count, and are not taken again.
    """

    def __init__(
        self,
        bench: Bench,
        candidates: Sequence[Candidate],
        record: Record,
        watcher: Watcher,
        earlier: Mapping[str, Sequence[float]],
    ) -> None:
        self.bench, self.record, self.watcher = bench, record, watcher
        self.yardsticks = [one for one in candidates if one.kind is Kind.COPY]
        self.candidates = {one.name: one for one in candidates if one.kind is not Kind.COPY}
        self.all = {one.name: one for one in candidates}
        self.left: set[str] = set()  # who has a final row
        self.samples: Samples = {name: list(taken) for name, taken in earlier.items()}

    def run(self, search: Search, halving: Halving) -> None:
        """Search. Raises KeyboardInterrupt, once all that was sampled is recorded."""
        names = self._shuffled()
        with self._keeping_samples():
            if search is Search.HALVING:
                names = self._halve(self._first_rung(names, halving), halving)
            else:
                self._prepare([*names, *self._yardstick_names()])
            self._settle(names)

    def run_guided(self, explore: Callable[[TryOut], None], halving: Halving) -> None:
        """Search among what `explore` tries out. Raises KeyboardInterrupt as `run` does."""
        with self._keeping_samples():
            self._prepare(self._yardstick_names())
            explore(functools.partial(self._try_out, halving.first_rounds))
            ready = [name for name in self.candidates if self.bench.is_ready(self.all[name])]
            self._settle(self._halve(ready, halving))

    def screen(self, halving: Halving) -> list[str]:
        """Drop the slower candidates, record all with the rounds they had; return the finalists.

        The rounds are too few for anybody to win by them.
        """
        few = min(ENOUGH_SAMPLES, self.bench.protocol.min_rounds) - 1
        finalists = self._halve(self._first_rung(self._shuffled(), halving), halving, few)
        self._leave(finalists)
        return finalists

    @contextmanager
    def _keeping_samples(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            self._leave(self.samples.keys() - self.left, is_complete=False)
            raise

    def _try_out(self, rounds: int, candidates: Sequence[Candidate]) -> dict[str, float]:
        """Verify further candidates and sample them; return the medians of the right ones."""
        chosen = {one.name: one for one in candidates}
        self.candidates |= chosen
        self.all |= chosen
        self._prepare(list(chosen))
        ready = [name for name in chosen if self.bench.is_ready(self.all[name])]
        right = self._sample(ready, rounds)
        self._drop(right)
        return {name: summarize(self.samples[name]).median for name in right}

    def _shuffled(self) -> list[str]:
        names = list(self.candidates)
        random.Random(self.bench.protocol.seed).shuffle(names)
        return names

    def _yardstick_names(self) -> list[str]:
        return [one.name for one in self.yardsticks]

    def _halve(
        self, names: list[str], halving: Halving, most_rounds: float = math.inf
    ) -> list[str]:
        """Drop the slower candidates rung by rung, the first of which they have had.

        Returns the finalists, or who is left when the next rung would take too many rounds.
        """
        rounds = halving.first_rounds
        while True:
            stay = halving.survivors({name: self.samples[name] for name in names})
            left = [name for name in names if name not in stay]
            self._leave(left)
            self._drop(left)
            rounds *= halving.growth
            if halving.is_over(len(names), len(stay)) or rounds > most_rounds:
                return stay
            names = self._sample(stay, rounds)

    def _first_rung(self, names: list[str], halving: Halving) -> list[str]:
        self._prepare(self._yardstick_names())
        right: list[str] = []
        for start in range(0, len(names), CHUNK):
            chunk = names[start : start + CHUNK]
            self._prepare(chunk)
            ready = [name for name in chunk if self.bench.is_ready(self.all[name])]
            right += self._sample(ready, halving.first_rounds)
            stay = halving.survivors({name: self.samples[name] for name in right})
            self._drop([name for name in ready if name not in stay])
        return right

    def _drop(self, names: Sequence[str]) -> None:
        for name in names:
            self.bench.drop(self.all[name])

    def _prepare(self, names: Sequence[str]) -> None:
        for name in names:
            row = self.bench.prepare(self.all[name])
            if self.bench.is_ready(self.all[name]):
                self.record.begin(row, self.samples.get(name, ()))
            else:
                self._finish(name)
            self.watcher.prepared(row)

    def _sample(self, names: Sequence[str], rounds: int) -> list[str]:
        """Bring candidates to so many rounds; return those that did not fail."""
        behind = [name for name in names if len(self.samples.get(name, ())) < rounds]
        self._take(behind, rounds, rounds)
        return [name for name in names if self.bench.is_ready(self.all[name])]

    def _settle(self, names: Sequence[str]) -> None:
        """Measure the finalists, and copies beside them, until the protocol is satisfied."""
        ready = [name for name in names if self.bench.is_ready(self.all[name])]
        ready += [one.name for one in self.yardsticks if self.bench.is_ready(one)]
        if any(name in self.candidates for name in ready):
            protocol = self.bench.protocol
            self._take(ready, protocol.min_rounds, protocol.max_rounds)
        self._leave([name for name in ready if self.bench.is_ready(self.all[name])], is_final=True)

    def _take(self, names: Sequence[str], least: int, most: int) -> None:
        if not names:
            return
        earlier = {name: self.samples.get(name, []) for name in names}
        most -= min(map(len, earlier.values()))
        protocol = replace(self.bench.protocol, min_rounds=least, max_rounds=most)
        taken = self.bench.time([self.all[name] for name in names], self.record, protocol, earlier)
        self._know(names, taken)
        if taken.interrupted:
            raise KeyboardInterrupt

    def _know(self, names: Sequence[str], taken: Rounds) -> None:
        for name in names:
            if name in taken.samples:
                self.samples[name] = taken.samples[name]
                self.watcher.sampled(name, taken.samples[name])
            elif not self.bench.is_ready(self.all[name]):  # as `time` has recorded
                self.samples.pop(name, None)
                self.left.add(name)
                self.watcher.finished(self.bench.found[name])

    def _leave(
        self, names: Iterable[str], is_final: bool = False, is_complete: bool = True
    ) -> None:
        """Record candidates that get no more samples; only those of the final can be tied."""
        known = {name: self.samples[name] for name in names if self._is_known(name)}
        copies = {one: self.samples[one] for one in self._yardstick_names() if self._is_known(one)}
        self.bench.summarize({**copies, **known}, is_complete=is_complete)
        for name in known:
            if not is_final and name in self.candidates:
                self.bench.found[name] = replace(self.bench.found[name], is_tied=False)
            self._finish(name)

    def _is_known(self, name: str) -> bool:
        return name in self.bench.found and bool(self.samples.get(name))

    def _finish(self, name: str) -> None:
        row = self.bench.found[name]
        self.left.add(name)
        self.record.finish(row)
        self.watcher.finished(row)
