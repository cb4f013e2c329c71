"""How long a sweep takes, about: what is to be done, at the pace that was seen.

What is to be done is counted in processor seconds of the machine that the constants below are from.
How much longer or shorter it takes here is a pace: that which `trial.py` sees of a few candidates
before a sweep, and that of the sweep so far once it runs. So only proportions must be right, of
shapes and kernels to each other.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgen.shape import Shape
from kgen.specs.formula import ceil_div
from kgen.sweep.halving import Search
from kgen.sweep.measure import How
from kgen.sweep.point import Point
from kgen.timing.on_cpu import MAX_COUNTED
from kgen.toolchain.batch import MAX_SOURCES

# Seconds of a 2 GHz core: of starting nvcc, and of each kernel in its unit; of both executables of
# a kernel for the CPU; of running and counting a candidate there, and what of it each element costs
# (with and without counting) and each thread that a row has.
NVCC_S, KERNEL_S = 0.4, 0.15
BUILD_S = 0.6
RUN_S, COUNTED_S, ELEMENT_S, THREAD_S = 0.015, 0.15e-6, 0.05e-6, 1.2e-6
# Seconds on an NVIDIA H200: of verifying a candidate and making it ready, and what of it a million
# elements cost.
PREPARE_S, PREPARE_S_PER_MILLION = 0.05, 0.001
# Rounds that a candidate gets on average, of those that it would get without halving.
HALVING_SHARE = 0.25
# What one processor does: starting, and of each candidate the rendering and writing its row down.
START_S, SERIAL_S = 0.5, 0.02


@dataclass(frozen=True)
class Pace:
    """Seconds that a second of each stage takes here; 0 for what the caches have."""

    compiling: float = 1.0
    building: float = 1.0
    running: float = 1.0


@dataclass(frozen=True)
class Estimate:
    """How many candidates will be tried, of how many kernels, and the seconds that it takes."""

    candidates: int
    kernels: int
    compile_s: float
    measure_s: float

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.compile_s + self.measure_s


def estimate(
    points: Sequence[Point], how: How, pace: Pace, measured: Mapping[Shape, int]
) -> Estimate:
    """Return what it takes to measure `points` here; `measured` others of a shape have their row.

    With the search by a model no more than `how.trials` of a shape are tried, the others included.
    """
    candidates = len(points)
    if how.search is Search.MODEL:
        left = Counter((point.rows, point.cols) for point in points)
        candidates = sum(
            min(number, max(0, how.trials - measured.get(shape, 0)))
            for shape, number in left.items()
        )
    share = candidates / len(points) if points else 0.0
    kernels = round(share * len({point.resolved for point in points}))
    cores = os.cpu_count() or 1
    running_s = share * pace.running * sum(run_s(point, how) for point in points)
    if how.on == "cpu":
        running_s = (running_s + kernels * pace.building * BUILD_S) / cores
    compile_s = pace.compiling * nvcc_s(kernels, cores) / cores
    return Estimate(candidates, kernels, compile_s, running_s + START_S + candidates * SERIAL_S)


def nvcc_s(kernels: int, cores: int) -> float:
    """Return what compiling so many kernels takes all cores together, in units of many."""
    units = min(kernels, cores * ceil_div(kernels, cores * MAX_SOURCES))
    return units * NVCC_S + kernels * KERNEL_S


def run_s(point: Point, how: How) -> float:
    """Return what verifying and measuring takes, apart from compiling: on the CPU one core."""
    elements = point.rows * point.cols
    if how.on == "cpu":
        counted_s = COUNTED_S if elements <= MAX_COUNTED else 0.0
        threads = point.rows * point.spec.row_threads
        return RUN_S + elements * (ELEMENT_S + counted_s) + threads * THREAD_S
    share = 1.0 if how.search is Search.FULL else HALVING_SHARE
    # A sample is replayed twice, and once only timed.
    sampling_s = share * 2 * how.protocol.min_rounds * how.protocol.sample_us / 1e6
    return PREPARE_S + PREPARE_S_PER_MILLION * elements / 1e6 + sampling_s
