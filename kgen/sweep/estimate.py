"""How long a sweep takes, about, before it begins."""

from __future__ import annotations

import os
from dataclasses import dataclass

from kgen.sweep.halving import Search
from kgen.sweep.plan import Plan
from kgen.timing.protocol import Protocol

# Seconds, seen on an NVIDIA H200 and on the two cores of a small machine: of nvcc for a kernel in
# a unit of many, of verifying a candidate and making it ready, and of a CPU's run and count for a
# million elements.
COMPILE_S = 0.12
PREPARE_S = 0.25
PREPARE_S_PER_MILLION = 0.03
CPU_S_PER_MILLION = 1.0
# Rounds that a candidate gets on average, of those that it would get without halving.
HALVING_SHARE = 0.25


@dataclass(frozen=True)
class Estimate:
    """Seconds that compiling and measuring will take, and the kernels that are compiled."""

    kernels: int
    compile_s: float
    measure_s: float

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.compile_s + self.measure_s


def estimate(plan: Plan, protocol: Protocol, search: Search, trials: int, on: str) -> Estimate:
    """Return what a plan will take on this machine, nothing of it being cached or measured yet.

    With the search by a model `trials` of the candidates of a shape are tried.
    """
    kernels = len({point.resolved for point in plan.points})
    cores = os.cpu_count() or 1
    measure_s = sum(
        _measure_s(point.rows * point.cols, protocol, search, on) for point in plan.points
    )
    if search is Search.MODEL:
        shapes = len({(point.rows, point.cols) for point in plan.points})
        share = min(1.0, trials * shapes / max(1, len(plan.points)))
        kernels, measure_s = round(share * kernels), share * measure_s
    return Estimate(kernels, kernels * COMPILE_S / cores, measure_s / (cores if on == "cpu" else 1))


def _measure_s(elements: int, protocol: Protocol, search: Search, on: str) -> float:
    millions = elements / 1e6
    if on == "cpu":
        return CPU_S_PER_MILLION * millions
    share = 1.0 if search is Search.FULL else HALVING_SHARE
    # A sample is replayed twice, and once only timed.
    sampling_s = share * 2 * protocol.min_rounds * protocol.sample_us / 1e6
    return PREPARE_S + PREPARE_S_PER_MILLION * millions + sampling_s
