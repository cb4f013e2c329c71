"""What a dry run says that a sweep will take, and what it goes by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kgen.store.measurement import Provenance
from kgen.sweep import trial
from kgen.sweep.estimate import Pace, estimate, nvcc_s, run_s
from kgen.sweep.halving import Search
from kgen.sweep.plan import plan
from kgen.sweep.point import Point
from kgen.sweep.run import How
from kgen.sweep.space import Space
from kgen.timing.protocol import Protocol

POINTS = plan(Space.make(["v5", "v8"], [64], [100, 200], {"threads": [64, 128]})).points
CPU = How(
    on="cpu",
    protocol=Protocol(),
    provenance=Provenance(run="", measured_at="", device="cpu"),
    search=Search.FULL,
)
GPU = replace(CPU, on="gpu")


def test_kernels_that_two_shapes_share_are_compiled_once() -> None:
    found = estimate(POINTS, GPU, Pace(), {})
    assert (found.candidates, found.kernels) == (8, 4)
    assert found.total_s == found.compile_s + found.measure_s


def test_halving_takes_less_than_all_and_few_trials_take_their_share() -> None:
    full = estimate(POINTS, GPU, Pace(), {})
    halving = estimate(POINTS, replace(GPU, search=Search.HALVING), Pace(), {})
    assert 0 < halving.measure_s < full.measure_s
    few = replace(GPU, search=Search.MODEL, trials=2)
    assert estimate(POINTS, few, Pace(), {}).candidates == 4  # 2 on each of two shapes
    assert estimate(POINTS, few, Pace(), {(64, 100): 1, (64, 200): 5}).candidates == 1


def test_what_is_left_takes_its_share_and_nothing_takes_nothing() -> None:
    whole, half = (estimate(points, CPU, Pace(), {}) for points in (POINTS, POINTS[::2]))
    assert half.candidates == 4 and half.measure_s < whole.measure_s
    assert estimate([], CPU, Pace(), {}).kernels == 0


def test_a_stage_takes_longer_at_a_slower_pace_and_what_is_cached_takes_none() -> None:
    usual = estimate(POINTS, CPU, Pace(), {})
    assert estimate(POINTS, CPU, Pace(compiling=3), {}).compile_s == pytest.approx(
        3 * usual.compile_s
    )
    assert estimate(POINTS, CPU, Pace(compiling=0), {}).compile_s == 0
    for slower in (Pace(building=3), Pace(running=3)):
        assert estimate(POINTS, CPU, slower, {}).measure_s > usual.measure_s


@pytest.mark.parametrize(
    ("variant", "rows", "cols", "processor_s"),
    [
        ("v5", 2000, 8, 0.63),
        ("v5", 16, 65536, 0.19),
        ("v5", 1024, 1024, 0.61),
        ("v8", 2000, 8, 0.09),
        ("v8", 1024, 1024, 0.25),
        ("v5:threads=1024", 2000, 64, 3.0),
        ("v9", 2000, 64, 0.63),
        ("k1", 1024, 1024, 0.24),
    ],
)
def test_shapes_and_kernels_on_the_cpu_are_in_proportion(
    variant: str, rows: int, cols: int, processor_s: float
) -> None:
    """Figures of the machine that the constants are from."""
    (point,) = plan(Space.make([variant], [rows], [cols])).points
    assert 1 / 1.5 < run_s(point, CPU) / processor_s < 1.5


@pytest.mark.parametrize("share", [0.0, 0.5, 2.0])
def test_the_pace_is_what_a_few_took_beside_what_was_expected(
    monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    clock = [0.0]

    def takes(seconds: Callable[[list[Point]], float]) -> Callable[..., None]:
        return lambda given, *_: clock.__setitem__(0, clock[0] + share * seconds(given))

    monkeypatch.setattr(trial, "_processor_s", lambda: clock[0])
    monkeypatch.setattr(trial, "_build", takes(lambda given: len(given) * trial.BUILD_S))
    monkeypatch.setattr(
        trial, "_run", takes(lambda given: sum(run_s(point, CPU) for point in given))
    )
    monkeypatch.setattr(trial, "_compile", takes(lambda given: nvcc_s(len(given), 1)))
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    found = trial.try_some(POINTS[:4], CPU)
    assert (found.building, found.running) == (pytest.approx(share), pytest.approx(share))
    assert trial.try_some(POINTS[:4], GPU) == Pace(found.compiling)


def test_a_trial_has_fewer_rows_and_at_least_one() -> None:
    large, long = plan(Space.make(["v5"], [70000], [1000, 200_000])).points
    assert [trial._shortened(one).rows for one in (large, long, POINTS[0])] == [131, 1, 64]
