"""Tries a few candidates of a sweep on the CPU, to see at what pace this machine works.

They go the way that all of them will go, through the same caches, so what is compiled here is not
compiled again; only the matrices have fewer rows. Processor time counts, so that other programs on
the machine change nothing.
"""

from __future__ import annotations

import os
import random
import resource
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product

from kgen.cpu.build import build
from kgen.errors import KgenError, MissingTool
from kgen.processes import thread_pool
from kgen.sources.render import render
from kgen.sources.source import Source
from kgen.specs.variants import checked
from kgen.sweep.estimate import BUILD_S, Pace, nvcc_s, run_s
from kgen.sweep.jobs import candidate_of
from kgen.sweep.measure import How
from kgen.sweep.model_gpu import REFERENCE_GPU
from kgen.sweep.point import Point
from kgen.timing.candidates import compiled
from kgen.timing.on_cpu import measure_on_cpu

# Candidates that are tried, and the elements, or threads, that their matrices have at most.
TRIED = 4
MOST_ELEMENTS = 1 << 17
# A kernel that does not end is not waited for.
TIMEOUT_S = 5.0


def try_some(points: Sequence[Point], how: How) -> Pace:
    """Return the pace of compiling a few of the points, and on the CPU that of running them.

    What cannot be compiled or run has the pace of the rest; stages whose tools are missing take no
    time. The points are chosen anew in every call, so that caches which hold a part of all count
    for that part.
    """
    some = [_shortened(point) for point in random.sample(points, min(TRIED, len(points)))]
    sources = list({(source := render(point.resolved)).text: source for point in some}.values())
    compiling = _pace(lambda: _compile(some, how), nvcc_s(len(sources), os.cpu_count() or 1))
    if how.on == "gpu" or not some:
        return Pace(compiling)
    with suppress(KgenError):
        _build([render(checked("v1"))])  # and the runtime, which all kernels share
    building = _pace(lambda: _build(sources), len(sources) * BUILD_S)
    running = _pace(lambda: _run(some, how), sum(run_s(point, how) for point in some))
    return Pace(compiling, building, running)


def _shortened(point: Point) -> Point:
    row = max(point.cols, point.spec.row_threads)
    return replace(point, rows=max(1, min(point.rows, MOST_ELEMENTS // row)))


def _pace(stage: Callable[[], None], reference_s: float) -> float:
    before = _processor_s()
    stage()
    return (_processor_s() - before) / reference_s if reference_s else 0.0


def _processor_s() -> float:
    """Return the seconds that this process and the ended ones that it started have computed."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _compile(points: Sequence[Point], how: How) -> None:
    with suppress(MissingTool):
        arch = how.arch or REFERENCE_GPU.arch
        compiled([candidate_of(point) for point in points], arch, how.protocol.options)


def _build(sources: Sequence[Source]) -> None:
    def one(source: Source, observing: bool) -> None:
        with suppress(KgenError):
            build(source, observing)

    with thread_pool(os.cpu_count() or 1) as pool:
        list(pool.map(lambda pair: one(*pair), product(sources, (False, True))))


def _run(points: Sequence[Point], how: How) -> None:
    for point in points:
        with suppress(KgenError):
            candidate = candidate_of(point)
            measure_on_cpu([candidate], how.protocol, how.provenance, timeout_s=TIMEOUT_S)
