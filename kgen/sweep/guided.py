"""Lets a sampler choose what to try, in spaces that are too large to try everything.

Optuna's tree-structured Parzen estimator learns from what was tried which values of the axes are
worth more trials. Its space is every combination of values; those that are no candidate are told
to it as pruned, as are candidates that turn out to be wrong or not worth a time.
"""

from __future__ import annotations

import importlib
import itertools
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kgen.errors import MissingTool
from kgen.sources.source import Source
from kgen.specs.fields import AXES
from kgen.store.measurement import Measurement
from kgen.sweep.rows import axes_of, contenders, cost_us, typed_axes
from kgen.text import install_hint
from kgen.timing.candidates import Candidate

# Candidates that are chosen, and then compiled, together; the first ones at random.
BATCH = 16
# Once so many choices in a row are nothing new, one that was not tried is taken at random.
MISSES = 20

# Tries candidates, and returns the microseconds of those that are right.
TryOut = Callable[[Sequence[Candidate]], Mapping[str, float]]
Coordinates = tuple[str, ...]


def explore(
    candidates: Sequence[Candidate],
    trials: int,
    seed: int,
    try_out: TryOut,
    known: Sequence[Measurement] = (),
) -> None:
    """Try as many candidates of a shape as `trials` says, chosen by what the tried ones took.

    `known` are rows of others that were tried before. The choice depends on the seed and the times
    only. Raises MissingTool without Optuna.
    """
    chooser = _Chooser(candidates, known, seed)
    for start in range(0, trials, BATCH):
        batch = list(itertools.islice(chooser.choices(), min(BATCH, trials - start)))
        chooser.learn(batch, try_out([chooser.candidates[point] for _, point in batch]))


class _Chooser:
    """What was tried, and what the sampler made of it. A point is a candidate's axis values."""

    def __init__(
        self, candidates: Sequence[Candidate], known: Sequence[Measurement], seed: int
    ) -> None:
        optuna = _optuna()
        values = [_axes_of(one) for one in candidates]
        before = [axes_of(row) for row in known]
        choices = {axis: sorted({each[axis] for each in values + before}) for axis in AXES}
        self.axes = [axis for axis in AXES if len(choices[axis]) > 1]
        places = [self._place(each) for each in values]
        self.candidates = dict(zip(places, candidates, strict=True))
        self.untried = dict.fromkeys(random.Random(seed).sample(places, len(places)))
        self.times: dict[Coordinates, float | None] = {}
        self.space = {
            axis: optuna.distributions.CategoricalDistribution(choices[axis]) for axis in self.axes
        }
        self.study = optuna.create_study(sampler=_sampler(optuna, seed))
        self.states = optuna.trial.TrialState
        for each, row in zip(before, known, strict=True):
            self.times[self._place(each)] = time = cost_us(row) if contenders([row]) else None
            self.study.add_trial(
                optuna.trial.create_trial(
                    state=self.states.PRUNED if time is None else self.states.COMPLETE,
                    value=time,
                    params={axis: each[axis] for axis in self.axes},
                    distributions=self.space,
                )
            )

    def _place(self, values: Mapping[str, str]) -> Coordinates:
        return tuple(values[axis] for axis in self.axes)

    def choices(self) -> Iterator[tuple[Any, Coordinates]]:
        """Yield trials of candidates that were not chosen before, as long as there are any."""
        misses = 0
        while self.untried:
            if misses == MISSES or not self.times:
                at_random = next(iter(self.untried))
                self.study.enqueue_trial(dict(zip(self.axes, at_random, strict=True)))
            trial = self.study.ask(self.space)
            point = tuple(trial.params[axis] for axis in self.axes)
            if point in self.untried:
                misses = 0
                del self.untried[point]
                yield trial, point
            else:
                misses += 1
                self._dismiss(trial, point)

    def learn(self, chosen: Sequence[tuple[Any, Coordinates]], times: Mapping[str, float]) -> None:
        """Take in the times, by name, of the candidates that were right."""
        for trial, point in chosen:
            self.times[point] = time = times.get(self.candidates[point].name)
            self._tell(trial, time)

    def _dismiss(self, trial: Any, point: Coordinates) -> None:
        """Tell of a choice that is no candidate, or that was made before."""
        if point in self.candidates and point not in self.times:
            self.study.tell(trial, state=self.states.FAIL)  # its time comes with the batch
        else:
            self._tell(trial, self.times.get(point))

    def _tell(self, trial: Any, time: float | None) -> None:
        if time is None:
            self.study.tell(trial, state=self.states.PRUNED)
        else:
            self.study.tell(trial, time)


def _axes_of(candidate: Candidate) -> dict[str, str]:
    assert isinstance(candidate.source, Source)
    return typed_axes(candidate.source.spec, candidate.cols)


def _sampler(optuna: Any, seed: int) -> Any:
    """Return a sampler that knows which values go together: few combinations are candidates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.TPESampler(seed=seed, n_startup_trials=BATCH, multivariate=True)


def _optuna() -> Any:
    try:
        optuna = importlib.import_module("optuna")
    except ImportError as error:
        raise MissingTool(
            f"Optuna is not installed (no module {error.name}): {install_hint('search')}"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
