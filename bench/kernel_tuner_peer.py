"""Tunes the same sources over the same space with Kernel Tuner and with kgen, and compares both.

usage: python bench/kernel_tuner_peer.py [--shape ROWS COLS] [--versions V ...] [--threads N ...]
                                         [--vec N ...] [--json FILE]
Needs a GPU, PyCUDA, kernel_tuner, and nvcc on the PATH. Both compile anew, verify and measure every
variant of the space that holds the shape; kgen's times of both winners say which one is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kgen.evidence.inputs import make
from kgen.evidence.reference import Criterion, Reference
from kgen.execute import source_for
from kgen.files import write_atomically
from kgen.launch import plan, serial_additions
from kgen.specs.rules import problems, problems_for
from kgen.specs.spec import Spec
from kgen.specs.variants import parse, spelling
from kgen.timing.provenance import this_run
from kgen.toolchain import CompileOptions

KERNEL = "softmax"  # Kernel Tuner wants one name for the kernel of all points
Point = Mapping[str, Any]  # values of version, block_size_x (that is what it launches) and vec


class Space(NamedTuple):
    """Every version with every number of threads and vector size, on one shape."""

    rows: int
    cols: int
    versions: list[str]
    threads: list[int]
    vec: list[int]

    def axes(self) -> dict[str, list[Any]]:
        """Return the values of each axis."""
        return {"version": self.versions, "block_size_x": self.threads, "vec": self.vec}

    def specs(self) -> dict[str, Spec]:
        """Return the specs of the points that hold the shape, by variant."""
        axes = self.axes()
        points = (dict(zip(axes, values, strict=True)) for values in product(*axes.values()))
        specs = [spec_of(point) for point in points if self.holds(point)]
        return {spelling(spec): spec for spec in specs}

    def holds(self, point: Point) -> bool:
        """Whether a point is one kernel (Kernel Tuner times no more) and can hold the shape."""
        spec = spec_of(point)
        found = problems(spec) or problems_for(spec, self.rows, self.cols)
        return not found and not spec.row_split.kernel_per_phase

    def text(self, point: Point) -> str:
        """Return the source of a point, its kernel under the common name."""
        source = source_for(spec_of(point), self.rows, self.cols)
        return re.sub(rf"\b{source.kernels[0]}\b", KERNEL, source.text)

    def blocks(self, point: Point) -> int:
        """Return the blocks of a point's launch: one a row, or one for the rows of its warps."""
        source = source_for(spec_of(point), self.rows, self.cols)
        return plan(source, self.rows, self.cols).launches[0].grid


def spec_of(point: Point) -> Spec:
    """Return a point's spec, which may be invalid."""
    return parse(f"{point['version']}:threads={point['block_size_x']},vec={point['vec']}")


def with_kernel_tuner(space: Space) -> dict[str, Any]:
    """Tune with Kernel Tuner's defaults: all points in turn, the mean of 7 launches each."""
    from kernel_tuner import tune_kernel

    x = make("uniform", space.rows, space.cols)
    y, reference = np.full_like(x, np.nan), Reference(x)
    additions = max(serial_additions(spec, space.cols) for spec in space.specs().values())
    start = time.perf_counter()
    results, found = tune_kernel(
        KERNEL,
        space.text,
        space.blocks,
        [x, y, np.int32(space.rows), np.int32(space.cols)],
        space.axes(),
        grid_div_x=[],
        restrictions=space.holds,
        answer=[None, y, None, None],  # says which argument is the output; `verify` judges it
        verify=lambda answer, outputs: reference.judge(outputs[1], Criterion(additions)).ok,
        lang="PyCUDA",
        compiler_options=list(CompileOptions().flags()),
        defines={},  # otherwise every axis is defined as a macro
    )
    seconds, best = time.perf_counter() - start, found["best_config"]
    return {
        "winner": spelling(spec_of(best)),
        "own_us": 1e3 * best["time"],
        "seconds": seconds,
        "variants": sum("__error__" not in result for result in results),
    }


def with_kgen(space: Space) -> tuple[dict[str, Any], dict[str, float]]:
    """Tune with kgen; return also the median microseconds of every variant."""
    from kgen.timing.bench import measure_shape
    from kgen.timing.protocol import Protocol

    start = time.perf_counter()
    rows = measure_shape(list(space.specs()), space.rows, space.cols, Protocol(), this_run())
    seconds = time.perf_counter() - start
    us = {row.variant: row.median_us for row in rows if row.median_us and row.kind == "variant"}
    winner = min(us, key=lambda name: us[name])
    return {"winner": winner, "own_us": us[winner], "seconds": seconds, "variants": len(us)}, us


def main() -> None:
    """Compare on the space of the command line; print a line a tool, and write JSON if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--shape", type=int, nargs=2, default=[1024, 4096])
    parser.add_argument("--versions", nargs="+", default=["v5", "v7", "v8"])
    parser.add_argument("--threads", type=int, nargs="+", default=[64, 128, 256, 512, 1024])
    parser.add_argument("--vec", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    space = Space._make([*options.shape, options.versions, options.threads, options.vec])
    with tempfile.TemporaryDirectory() as cache:
        os.environ["KGEN_CACHE_DIR"] = cache  # so that neither side finds anything compiled
        theirs, (ours, medians) = with_kernel_tuner(space), with_kgen(space)
    found = {"kernel_tuner": theirs, "kgen": ours}
    for tool, told in found.items():
        told["kgen_us"] = medians.get(told["winner"])
        print(tool, *(f"{key}={value}" for key, value in told.items()))
    if options.json:
        content = {"machine": asdict(this_run()), "space": space._asdict()} | found
        write_atomically(options.json, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
