"""Measures how fast many different kernels are compiled, against an nvcc call for each.

usage: python bench/compile_speed.py [--sources N] [--rounds N] [--part N] [--json FILE]

A round compiles all sources with kgen's `compile_many` from an empty cache, and a part of them,
another one in every round, in each of the other ways; so whatever else the machine does slows all
ways alike. The ratios are of sources a second in the same round.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import product
from pathlib import Path

from speed import DEVICE_VERSIONS, Figure, empty_cache, figure, machine, seconds

import kgen
from kgen.files import write_atomically
from kgen.sources.source import Source
from kgen.specs.rules import problems
from kgen.specs.variants import parse
from kgen.toolchain import Binary, CompileOptions, compile_many, find_nvcc

ARCH = "sm_90"
PROCESSORS = os.cpu_count() or 1
TARGET = 5.0
FLAGS = ["-cubin", f"-arch={ARCH}", *CompileOptions().flags()]


def distinct_sources(count: int) -> list[Source]:
    """Return sources of all versions for the device in random order, every one different."""
    choices = product(DEVICE_VERSIONS, (64, 128, 256, 512), ("__expf", "exp2", "expf"))
    spelt = [f"{version}:threads={threads},exp={exp}" for version, threads, exp in choices]
    sources = {kgen.render(variant) for variant in spelt if not problems(parse(variant))}
    return random.Random(0).sample(sorted(sources, key=lambda source: source.stem), count)


def together(sources: list[Source]) -> None:
    """Compile as kgen does."""
    with empty_cache():
        assert all(isinstance(binary, Binary) for binary in compile_many(sources, ARCH))


def one_after_the_other(sources: list[Source]) -> None:
    """Compile as a loop over PyCUDA's SourceModule does, without its cache."""
    for source in sources:
        _call_nvcc([source], [])


def one_a_processor(sources: list[Source]) -> None:
    """Compile as the same loop does in as many threads as there are processors."""
    with ThreadPoolExecutor(PROCESSORS) as pool:
        list(pool.map(lambda source: _call_nvcc([source], []), sources))


def one_call(sources: list[Source]) -> None:
    """Compile all files in one call of nvcc."""
    _call_nvcc(sources, ["--threads", str(PROCESSORS)])


def _call_nvcc(sources: list[Source], flags: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for source in sources:
            Path(folder, source.filename).write_text(source.text)
        names = [source.filename for source in sources]
        command = [find_nvcc().path, *FLAGS, *flags, *names]
        subprocess.run(command, cwd=folder, check=True)


OTHER_WAYS: dict[str, Callable[[list[Source]], None]] = {
    "nvcc for each, in sequence": one_after_the_other,
    f"nvcc for each, {PROCESSORS} at a time": one_a_processor,
    f"nvcc --threads {PROCESSORS}, all files": one_call,
}


def measure(sources: list[Source], rounds: int, size: int) -> Iterator[Figure]:
    """Return the rates of all ways, and the ratios of kgen's to each of the others."""
    ours: list[float] = []
    theirs: dict[str, list[float]] = {name: [] for name in OTHER_WAYS}
    for number in range(rounds):
        ours.append(len(sources) / seconds(together, sources))
        part = sources[number::rounds][:size]
        for name, way in OTHER_WAYS.items():
            theirs[name].append(len(part) / seconds(way, part))
    yield figure("compile_many", "sources/s", ours)
    for name, rates in theirs.items():
        yield figure(name, "sources/s", rates)
    for name, rates in theirs.items():
        ratios = [one / other for one, other in zip(ours, rates, strict=True)]
        yield figure(f"compile_many / {name}", "times", ratios, f">= {TARGET:g} times")


def measure_cached(sources: list[Source]) -> Iterator[Figure]:
    """Time the same sources when the cache has all of them."""
    with empty_cache():
        compile_many(sources, ARCH)
        times = [seconds(compile_many, sources, ARCH) for _ in range(5)]
    yield figure(f"compile_many, {len(sources)} sources in the cache", "s", times)


def main() -> None:
    """Measure, print a table, and write it where --json says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sources", type=int, default=128, help="how many, up to 216")
    parser.add_argument("--rounds", type=int, default=8, help="how often they are compiled")
    parser.add_argument("--part", type=int, default=16, help="how many of them in the other ways")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    options = parser.parse_args()
    sources = distinct_sources(options.sources)
    figures = [*measure(sources, options.rounds, options.part), *measure_cached(sources)]
    print(*figures, sep="\n")
    if options.json:
        content = {
            "machine": machine(),
            "sources": len(sources),
            "kernels": sum(len(source.kernels) for source in sources),
            "figures": [asdict(measured) for measured in figures],
        }
        write_atomically(options.json, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
