"""Measures what kgen itself costs: planning, rendering, starting, running on the CPU, compiling.

usage: python bench/speed.py [--rows N] [--cols N] [--json FILE]

Targets stand beside the figures and are never enforced: a time says as much about the machine and
its load as about kgen. What a missing tool prevents is left out, with the reason.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import kgen
from kgen.doctor import inspect_machine
from kgen.errors import MissingTool
from kgen.evidence.check import check
from kgen.evidence.inputs import make
from kgen.files import write_atomically
from kgen.sources.render import render
from kgen.specs.rules import problems
from kgen.specs.variants import checked, parse
from kgen.specs.versions import VERSIONS
from kgen.sweep.plan import plan
from kgen.sweep.space import Space, everything

LIST_RUNS = 10
CPU_RUNS = 5
PLAN_RUNS = 3
CHECKED = ("v5", "v7", "v9")
SMALL_ROWS, SMALL_COLS = 4, 257
RENDERED = 1000
# Every second of its combinations can run.
PLANNED = Space.make(
    ["v2"],
    axes={
        "topology": ["tree", "two_level", "warps_thread0"],
        "merge": ["separate", "paired"],
        "update": ["three_pass", "online", "online_shared", "online_branch"],
        "cache": ["none", "exps_output", "inputs_registers", "inputs_shared"],
        "vec": [1, 2, 4],
        "unaligned": ["scalar_row", "scalar_groups"],
        "threads": ["64..1024:64"],
        "min_blocks": ["auto", 1],
        "exp": ["expf", "__expf", "exp2"],
        "normalize": ["divide", "reciprocal"],
        "static_cols": ["auto", 4096],
    },
)
DEVICE_VERSIONS = [name for name, version in VERSIONS.items() if not version.spec.is_host]


@dataclass(frozen=True)
class Figure:
    """The median of some samples, the least and the largest, and the target if there is one."""

    what: str
    unit: str
    median: float
    least: float
    most: float
    samples: int
    target: str

    def __str__(self) -> str:
        """Return a line of the table."""
        spread = f"{self.least:.3g} to {self.most:.3g}" if self.samples > 1 else ""
        target = f"target {self.target}" if self.target else ""
        value = f"{self.median:8.3g} {self.unit}"
        return f"{self.what:<44}{value:<28}{spread:<18}{self.samples:>5} x  {target}".rstrip()


def figure(what: str, unit: str, samples: Sequence[float], target: str = "") -> Figure:
    """Sum samples up."""
    middle = statistics.median(samples)
    return Figure(what, unit, middle, min(samples), max(samples), len(samples), target)


def seconds(function: Callable[..., object], *arguments: object) -> float:
    """Return how long one call takes."""
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def measure_render() -> Iterator[Figure]:
    """Time variants from their spelling to their text, each of them rendered once."""
    first, *others = distinct_variants()
    yield figure("first render, importing Jinja", "ms", [1e3 * seconds(kgen.render, first)])
    times = [1e3 * seconds(kgen.render, variant) for variant in others]
    yield figure("render of another variant", "ms", times, "< 2 ms")


def measure_planning() -> Iterator[Figure]:
    """Time the plan of a sweep, and the spelling and rendering of some of its kernels."""
    times = [seconds(plan, PLANNED) for _ in range(PLAN_RUNS)]
    yield figure(f"planning {PLANNED.combinations:,} points", "s", times, "< 5 s")
    spaces = everything([1024], [4096])
    points = sum(space.combinations for space in spaces)
    yield figure(f"planning everything, {points:,} points", "s", [seconds(plan, *spaces)], "< 10 s")
    points = plan(PLANNED).points
    some = points[:: len(points) // RENDERED][:RENDERED]
    times = [1e6 * seconds(lambda point: point.variant, point) for point in some]
    yield figure("spelling a point of it", "us", times)
    times = [seconds(render, point.resolved) for point in some]
    yield figure(f"rendering {RENDERED:,} distinct kernels of it", "s", [sum(times)], "< 2 s")


def distinct_variants() -> list[str]:
    """Return valid variants of every version, all of them different."""
    settings = itertools.product((64, 192), ("__expf", "exp2"), ("divide", "reciprocal"))
    spelt = (
        f"{version}:threads={threads},exp={exp},normalize={normalize}"
        for threads, exp, normalize in settings
        for version in VERSIONS
    )
    return [variant for variant in spelt if not problems(parse(variant))]


def measure_list() -> Iterator[Figure]:
    """Time `kgen list` as a process whose bytecode is cached, as after an installation."""
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-P", "-m", "kgen", "list"]
        start = functools.partial(
            subprocess.run, command, env=environment, stdout=subprocess.DEVNULL, check=True
        )
        start()
        times = [seconds(start) for _ in range(LIST_RUNS)]
    yield figure("kgen list, the process", "s", times, "< 0.3 s")


def measure_throughput(rows: int, cols: int) -> Iterator[Figure]:
    """Time v7 on the CPU executor, compiled before; the process and copies are inside."""
    x = make("uniform", rows, cols)
    kgen.run("v7", x)
    rates = [x.size / 1e6 / seconds(kgen.run, "v7", x) for _ in range(CPU_RUNS)]
    what = f"v7 on the CPU executor, {rows} x {cols}"
    yield figure(what, "million elements/s", rates, "> 20 million/s")


def measure_first_form(rows: int, cols: int) -> Iterator[Figure]:
    """Time v7 on what the executor was at first: fibers of ucontext, and one worker."""
    x = make("uniform", rows, cols)
    build, run = (importlib.import_module(f"kgen.cpu.{name}") for name in ("build", "run"))
    flags, workers = build.RUNTIME_FLAGS, run.WORKERS
    with empty_cache():
        vars(build)["RUNTIME_FLAGS"], vars(run)["WORKERS"] = (*flags, "-DKGEN_CPU_UCONTEXT"), 1
        try:
            kgen.run("v7", x)
            rates = [x.size / 1e6 / seconds(kgen.run, "v7", x) for _ in range(CPU_RUNS)]
        finally:
            vars(build)["RUNTIME_FLAGS"], vars(run)["WORKERS"] = flags, workers
    kgen.run("v7", x)
    now = [x.size / 1e6 / seconds(kgen.run, "v7", x) for _ in range(CPU_RUNS)]
    yield figure("the same in its first form", "million elements/s", rates)
    ratio = statistics.median(now) / statistics.median(rates)
    yield figure("now against the first form", "times", [ratio])


def measure_checks() -> Iterator[Figure]:
    """Time the checks with everything on: one version at 64 x 4096, and all at their boundaries."""
    everything = {"memory": True, "races": True}
    shape = [(64, 4096)]
    one = [seconds(list, check(checked(name), shapes=shape, **everything)) for name in CHECKED]
    yield figure("check with memory and races, 64 x 4096", "s", one, "< 10 s")
    specs = [version.spec for version in VERSIONS.values()]
    with empty_cache():
        every = sum(seconds(list, check(spec, **everything)) for spec in specs)
    yield figure("the same, all versions, from an empty cache", "s", [every], "< 180 s")


def measure_first_runs() -> Iterator[Figure]:
    """Time small runs on the CPU executor from an empty cache on."""
    x = make("uniform", SMALL_ROWS, SMALL_COLS)
    first, *others = DEVICE_VERSIONS
    with empty_cache():
        yield figure("first run on the CPU of all", "s", [seconds(kgen.run, first, x)])
        times = [seconds(kgen.run, version, x) for version in others]
        yield figure("first run on the CPU of another version", "s", times)
        times = [seconds(kgen.run, version, x) for version in others]
        yield figure("its second run", "s", times)


def measure_nvcc() -> Iterator[Figure]:
    """Time nvcc on every version, one after the other, for sm_90."""
    with empty_cache():
        times = [
            seconds(kgen.compile, version) / len(kgen.render(version).kernels)
            for version in DEVICE_VERSIONS
        ]
    yield figure("nvcc, a kernel for sm_90", "s", times)


@contextmanager
def empty_cache() -> Iterator[None]:
    """Give kgen an empty cache for a while."""
    before = os.environ.pop("KGEN_CACHE_DIR", None)
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["KGEN_CACHE_DIR"] = folder
            yield
    finally:
        del os.environ["KGEN_CACHE_DIR"]
        if before is not None:
            os.environ["KGEN_CACHE_DIR"] = before


def machine() -> dict[str, str]:
    """Describe this machine: the system, its processors, and the versions of what kgen found."""
    found = {finding.what: finding.version for finding in inspect_machine() if finding.found}
    return {"system": platform.platform(), "processors": str(os.cpu_count()), **found}


def main() -> None:
    """Measure what this machine can, print it line by line, and write it where --json says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1024, help="rows of the CPU executor's matrix")
    parser.add_argument("--cols", type=int, default=4096, help="elements of its rows")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    options = parser.parse_args()
    throughput = functools.partial(measure_throughput, options.rows, options.cols)
    first_form = functools.partial(measure_first_form, options.rows, options.cols)
    figures: list[Figure] = []
    for measure in (
        measure_render,
        measure_planning,
        measure_list,
        throughput,
        first_form,
        measure_checks,
        measure_first_runs,
        measure_nvcc,
    ):
        try:
            for measured in measure():
                print(measured, flush=True)
                figures.append(measured)
        except MissingTool as missing:
            print(f"left out: {missing}")
    if options.json:
        content = {"machine": machine(), "figures": [asdict(measured) for measured in figures]}
        write_atomically(options.json, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
