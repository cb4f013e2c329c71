"""What a dry run says that a sweep will take."""

from __future__ import annotations

import pytest

from kgen.sweep.estimate import estimate
from kgen.sweep.halving import Search
from kgen.sweep.plan import plan
from kgen.sweep.space import Space
from kgen.timing.protocol import Protocol

PLAN = plan(Space.make(["v5", "v8"], [64], [100, 200], {"threads": [64, 128]}))
PROTOCOL = Protocol()


def test_kernels_that_two_shapes_share_are_compiled_once() -> None:
    assert len(PLAN.points) == 8
    assert estimate(PLAN, PROTOCOL, Search.FULL, 100, "gpu").kernels == 4


def test_halving_takes_less_than_all_and_few_trials_take_their_share() -> None:
    full, halving = (estimate(PLAN, PROTOCOL, s, 100, "gpu") for s in (Search.FULL, Search.HALVING))
    assert 0 < halving.measure_s < full.measure_s
    assert full.total_s == full.compile_s + full.measure_s
    few = estimate(PLAN, PROTOCOL, Search.MODEL, 1, "gpu")  # 1 of 4 on each of two shapes
    assert few.kernels == 1 and few.measure_s == pytest.approx(halving.measure_s / 4)


def test_the_cpu_takes_longer_for_more_elements() -> None:
    larger = plan(Space.make(["v5", "v8"], [640], [100, 200], {"threads": [64, 128]}))
    small, large = (estimate(p, PROTOCOL, Search.FULL, 100, "cpu") for p in (PLAN, larger))
    assert large.measure_s == pytest.approx(10 * small.measure_s)
