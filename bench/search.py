"""Compares the search that halves with the full sweep: the winner, and the GPU time it takes.

usage: python bench/search.py FILE.json [ROWSxCOLS ...]
Needs a GPU. Both searches get the same candidates of the same shape, from nothing; then the two
winners are measured side by side.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from kgen.files import write_atomically
from kgen.store.database import open_store
from kgen.store.measurement import Kind, Measurement
from kgen.sweep.halving import Search
from kgen.sweep.jobs import jobs_of
from kgen.sweep.measure import How, run_jobs
from kgen.sweep.plan import plan
from kgen.sweep.space import Space
from kgen.timing.bench import NoRecord, measure_shape
from kgen.timing.protocol import find_protocol
from kgen.timing.provenance import this_run

VARIANTS = ("v2", "v3", "v5", "v6_double", "v7", "v8", "v9")
AXES = {
    "threads": (128, 256, 512, 1024),
    "vec": (1, 4),
    "cache": ("none", "inputs_registers", "inputs_shared"),
}
SHAPES = ((1024, 4096), (4096, 257), (256, 16384))


class Meter(NoRecord):
    """Adds up what samples take on the GPU; each of them is replayed once before it is timed."""

    def __init__(self) -> None:
        self.rounds, self.gpu_s = 0, 0.0

    def add_round(self, rows: Mapping[str, Measurement], taken: Mapping[str, float]) -> None:
        """Count a round."""
        self.rounds += 1
        self.gpu_s += sum(
            2 * us * (rows[name].calls_per_sample or 1) / 1e6 for name, us in taken.items()
        )


class Rows:
    """Keeps the rows that are finished."""

    def __init__(self) -> None:
        self.rows: list[Measurement] = []

    def prepared(self, row: Measurement) -> None:
        """Nothing to keep."""

    def sampled(self, name: str, samples_us: Sequence[float]) -> None:
        """Nothing to keep."""

    def finished(self, row: Measurement) -> None:
        """Keep a row."""
        self.rows.append(row)


def searched(shape: tuple[int, int], how: How) -> dict[str, Any]:
    """Run one search on one shape; return its winner and what it cost."""
    rows, cols = shape
    space = Space.make(VARIANTS, [rows], [cols], AXES)
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder, "db.sqlite")) as store:
        jobs = jobs_of(plan(space), store, how.protocol, how.provenance)
    meter, kept = Meter(), Rows()
    began = time.monotonic()
    run_jobs(jobs, how, meter, kept)
    timed = [row for row in kept.rows if row.median_us and row.kind is not Kind.COPY]
    winner = min(timed, key=lambda row: row.median_us or 0)
    return {
        "winner": winner.variant,
        "median_us": winner.median_us,
        "percent_of_copy": winner.percent_of_copy,
        "candidates": sum(row.kind is not Kind.COPY for row in kept.rows),
        "timed": len(timed),
        "gpu_s": meter.gpu_s,
        "wall_s": time.monotonic() - began,
    }


def compared(shape: tuple[int, int], how: How) -> dict[str, Any]:
    """Run both searches on one shape, and their winners side by side."""
    found: dict[str, Any] = {"rows": shape[0], "cols": shape[1]}
    for search in (Search.FULL, Search.HALVING):
        found[str(search)] = searched(shape, replace(how, search=search))
    full, halving = (found[str(search)]["winner"] for search in (Search.FULL, Search.HALVING))
    duel = measure_shape([full, halving], *shape, how.protocol, how.provenance, baseline=full)
    row = next(row for row in duel if row.variant == halving)
    found["halving_over_full"] = [
        1 / (x or 1) for x in (row.speedup, row.speedup_high, row.speedup_low)
    ]
    found["same_within_noise"] = halving == full or (row.speedup_low or 0) <= 1 <= (
        row.speedup_high or 0
    )
    found["gpu_time_share"] = found["halving"]["gpu_s"] / found["full"]["gpu_s"]
    return found


def main() -> None:
    """Compare on every shape, write the file, and print a short table."""
    shapes = [tuple(map(int, text.split("x"))) for text in sys.argv[2:]] or SHAPES
    how = How(
        on="gpu", protocol=find_protocol("rotated", "cold", budget_s=60.0), provenance=this_run()
    )
    results = [compared((rows, cols), how) for rows, cols in shapes]
    content = {"machine": asdict(how.provenance), "method": str(how.protocol), "shapes": results}
    write_atomically(Path(sys.argv[1]), json.dumps(content, indent=1) + "\n")
    for found in results:
        print(
            f"{found['rows']} x {found['cols']}: full {found['full']['winner']} in "
            f"{found['full']['gpu_s']:.1f} s of GPU time, halving {found['halving']['winner']} in "
            f"{found['halving']['gpu_s']:.1f} s ({found['gpu_time_share']:.0%}); "
            f"ratio of the winners {found['halving_over_full'][0]:.3f}"
        )


if __name__ == "__main__":
    main()
