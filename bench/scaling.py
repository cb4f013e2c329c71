"""Measures what a second GPU brings: the throughput of a sweep on two workers against one.

usage: python bench/scaling.py [--rows N] [--cols N] [--workers N] [--json FILE]

Both sweeps are of the same candidates, compiled before, each into a database of its own. It takes
two GPUs, nvcc and Dask.distributed, and says which of them is missing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from kgen.errors import MissingTool
from kgen.files import write_atomically
from kgen.gpu.device import device_info, load_driver
from kgen.store.database import open_store
from kgen.store.measurement import Kind
from kgen.text import install_hint
from kgen.toolchain import find_nvcc

# 360 combinations: minutes on a GPU, and several tasks for each.
VARIANTS = "v4,v5,v6,v7,v8"
AXES = (
    "threads=64,128,256,512",
    "vec=1,2,4",
    "exp=expf,__expf,exp2",
    "normalize=divide,reciprocal",
)


@dataclass(frozen=True)
class Throughput:
    """What a sweep on so many workers did, its start and end included."""

    workers: int
    candidates: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Candidates that got their final row, a second."""
        return self.candidates / self.seconds


def require(workers: int) -> str:
    """Return the GPU's name. Raises MissingTool for what this machine lacks."""
    if not find_spec("distributed"):
        raise MissingTool(f"Dask.distributed is not installed: {install_hint('cluster')}")
    find_nvcc()
    name = device_info().name
    if (found := load_driver().Device.count()) < workers:
        raise MissingTool(f"{workers} workers need a GPU each, and this machine shows {found}")
    return name


def sweep(workers: int, rows: int, cols: int) -> Throughput:
    """Sweep on so many workers, from an empty database on."""
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "results.sqlite"
        command = [sys.executable, "-P", "-m", "kgen", "sweep", "--variants", VARIANTS]
        command += [f"--rows={rows}", f"--cols={cols}", f"--local-workers={workers}", f"--db={db}"]
        command += [f"--axis={axis}" for axis in AXES]
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        seconds = time.perf_counter() - start
        with open_store(db, read_only=True) as store:
            done = sum(row.kind is not Kind.COPY for row in store.select())
    return Throughput(workers, done, seconds)


def main() -> None:
    """Sweep on one worker and on several, and write what came out where --json says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1024, help="rows of the matrix")
    parser.add_argument("--cols", type=int, default=4096, help="elements of a row")
    parser.add_argument("--workers", type=int, default=2, help="workers that are compared with one")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    options = parser.parse_args()
    try:
        gpu = require(options.workers)
    except MissingTool as missing:
        sys.exit(f"left out: {missing}")
    sweep(options.workers, 1, options.cols)  # compiles the same kernels
    one, many = (sweep(workers, options.rows, options.cols) for workers in (1, options.workers))
    ratio = many.per_second / one.per_second
    for figure in (one, many):
        print(f"{figure.workers} workers: {figure.per_second:.2f} candidates a second")
    print(f"ratio: {ratio:.2f}")
    if options.json:
        figures = [asdict(figure) | {"per_second": figure.per_second} for figure in (one, many)]
        content = {"gpu": gpu, "rows": options.rows, "cols": options.cols}
        content |= {"figures": figures, "ratio": ratio}
        write_atomically(options.json, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
