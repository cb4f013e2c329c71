"""What both sides judge: versions, sampled combinations and mutants, at boundary shapes."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from kgen.evidence.mutation.mistakes import mutants
from kgen.sources.render import render
from kgen.specs.rules import problems_for
from kgen.specs.spec import Spec
from kgen.specs.variants import checked, spelling
from kgen.specs.versions import VERSIONS
from tests.strategies import valid_specs

COMBINATIONS = 40
# Rows of a part of a warp, of several warps of a larger block, another operation; chunks and rows
# that come asynchronously, and blocks that share a row and go on to further ones.
BESIDE = (
    "v8:threads_per_row=2",
    "v8:threads_per_row=8,vec=4,cache=registers",
    "v8:threads_per_row=4,row_loop=grid_stride,grid=3",
    "v5:threads_per_row=64",
    "v7:op=log_softmax",
    "v12:row_io=chunk_async,row_loop=grid_stride,grid=2",
    "v12:row_io=chunk_bulk,row_loop=grid_stride,grid=2",
    "v11:cache=exps_shared_async,threads=64",
    "v11:row_loop=grid_stride,next_row=registers,threads=64,grid=3",
    "v13:row_split=cluster,blocks_per_row=4,threads=64,row_loop=grid_stride,grid=8",
    "v13:blocks_per_row=4,threads=64,row_loop=grid_stride,next_row=async,grid=8",
    "v13:blocks_per_row=4,threads=64,row_loop=grid_stride,next_row=bulk,unaligned=shift,grid=8",
    "v13:blocks_per_row=4,threads=64,cache=exps_shared_bulk,row_loop=grid_stride,grid=8",
    "v14:blocks_per_row=4,threads=64",
    "v14:blocks_per_row=2,threads=64,cache=exps_shared",
)
SHAPES = ((9, 3), (17, 257), (5, 1027))
# The shapes of the report's load and store counts.
COUNTED = (
    *((name, 128, 4096) for name in ("v2", "v3")),
    *((name, 1024, 4096) for name in ("v5", "v6", "v6_double", "v7")),
    *((name, 1025, 257) for name in ("v5", "v8")),
)
# variant, mistake, the place where it is made -> the tool that should see it, and the shape.
MUTANTS = {
    ("v1", "barrier removed", 2): ("racecheck", "5x1027"),
    ("v2", "barrier removed", 3): ("racecheck", "5x1027"),
    ("c1", "barrier removed", 3): ("racecheck", "5x1027"),
    ("v9", "barrier removed", 3): ("racecheck", "300x1027"),
    ("v8:threads_per_row=8", "mask of the whole warp", 1): ("synccheck", "17x257"),
    ("v6", "one column too many", 1): ("memcheck", "1x257"),
    ("v8", "one row too many", 1): ("memcheck", "17x257"),
    ("v9", "vector guard dropped", 1): ("memcheck", "17x257"),
    ("v6", "index scaled twice", 1): ("memcheck", "1x4096"),
    ("k2", "output left unwritten", 1): ("initcheck", "5x257"),
}


def clean_jobs() -> list[str]:
    """Return the jobs of every version for the GPU and of the sampled combinations."""
    specs = [version.spec for version in VERSIONS.values() if not version.spec.is_host]
    specs += map(checked, BESIDE)
    return [
        f"{spelling(spec)}@{rows}x{cols}"
        for spec in [*specs, *combinations()]
        for rows, cols in SHAPES
        if not problems_for(spec, rows, cols)
    ]


def combinations() -> list[Spec]:
    """Return distinct valid specs, the same on every machine, in the order of their spelling."""
    found: set[Spec] = set()

    @settings(
        max_examples=400,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(valid_specs())
    def collect(spec: Spec) -> None:
        if not spec.is_host and spec.version != spelling(spec):
            found.add(spec)

    collect()
    ordered = sorted(found, key=spelling)
    return ordered[:: max(len(ordered) // COMBINATIONS, 1)][:COMBINATIONS]


def mutant_jobs(folder: Path) -> dict[str, str]:
    """Write the mutants into `folder`; return each one's job and the tool that should see it."""
    jobs = {}
    for (variant, mistake, place), (tool, shape) in MUTANTS.items():
        cols = int(shape.partition("x")[2])
        made = mutants(render(checked(variant).resolve(cols)))
        mutant = next(m for m in made if (m.mistake, m.place) == (mistake, place))
        file = folder / re.sub(r"\W+", "_", f"{variant} {mistake} {place}.cu").replace("_cu", ".cu")
        file.write_text(mutant.source.text, encoding="utf-8")
        jobs[f"{file}@{shape}"] = tool
    return jobs
