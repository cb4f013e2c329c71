"""Times the generator's kernels beside copies and peers, on named and on drawn shapes.

usage: python bench/limit.py FOLDER [--shapes ROWSxCOLS,...] [--drawn N] [--seed N] [--seconds S]
                              [--dtype TYPE] [--out-dtype TYPE]

Needs a GPU. For each shape a default sweep finds the winner, and one run of the default protocol
times the winner beside the copies and all peers. FOLDER gets sweep-ROWSxCOLS.json and
bench-ROWSxCOLS.json, with a type behind the shape where it is not float32
(bench-1024x4096-bfloat16-float32.json is of a bfloat16 input and a float32 output); what has both
is left alone. Drawn shapes have 2^a rows and 2^b
columns, a and b uniform over the whole range, as far as the matrix has 2^14 to 2^27 elements.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

SHAPES = (
    *("256x65536", "2048x65536", "1024x131072", "512x32768", "4096x50257", "64x151936"),
    *("128x16384", "1x32000", "8x32000", "1x131072", "8x128256", "32x128256", "1x1048576"),
    *("262144x32", "131072x128", "100000x64", "65536x127", "32768x1023", "16384x257"),
    *("8192x4097", "1024x4096"),
)
MAX_ROWS, MAX_COLS = 2**18, 2**20
ELEMENTS = range(2**14, 2**27)


def drawn(number: int, seed: int) -> Iterator[str]:
    """Yield shapes that nobody chose."""
    chance = random.Random(seed)
    while number:
        rows, cols = (int(2 ** chance.uniform(0, math.log2(most))) for most in (MAX_ROWS, MAX_COLS))
        if rows * cols in ELEMENTS:
            number -= 1
            yield f"{rows}x{cols}"


def kgen(*arguments: str) -> None:
    """Run a command of kgen; what it says goes to stderr if it fails."""
    command = [sys.executable, "-m", "kgen", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(" ".join(command), done.stdout[-800:], done.stderr[-800:], sep="\n", file=sys.stderr)


def fastest(path: Path, kind: str) -> dict[str, Any] | None:
    """Return the row of the kind that took the least time; None if none has a time."""
    rows = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    timed = [row for row in rows if row["kind"] == kind and row["median_us"] and row["variant"]]
    return min(timed, key=lambda row: row["median_us"], default=None)


def of_file_names(dtype: str, out_dtype: str) -> tuple[str, ...]:
    """Return the types that stand in names of files: none for float32, one where both are alike."""
    both = tuple(dict.fromkeys((dtype, out_dtype)))
    return () if both == ("float32",) else both


def type_options(types: Sequence[str]) -> list[str]:
    """Return the options of a command for a type, or for those of input and output."""
    given = zip(("--dtype", "--out-dtype"), types, strict=False)
    return [word for pair in given for word in pair]


def measure(shape: str, types: Sequence[str], folder: Path, seconds: float) -> str:
    """Sweep a shape and time its winner beside the peers; return a line of the table."""
    rows, cols = shape.split("x")
    size = ("--rows", rows, "--cols", cols, "--db", str(folder / "runs.db"))
    name = "-".join((shape, *types))
    swept, benched = folder / f"sweep-{name}.json", folder / f"bench-{name}.json"
    started = time.monotonic()
    if not swept.exists():
        found_in = ("--seconds", str(seconds), "--out", str(swept))
        kgen("sweep", *size, *type_options(types), *found_in)
    took = time.monotonic() - started
    winner = fastest(swept, "variant")
    if winner and not benched.exists():
        budget = ("--seconds", str(seconds), "--out", str(benched))
        kgen("bench", winner["variant"], *size, "--peers", *budget)
    return f"{line(shape, benched)}  swept in {took:.0f} s"


def line(shape: str, benched: Path) -> str:
    """Return what a file of one run says of its shape."""
    ours, peer, copy = (fastest(benched, kind) for kind in ("variant", "peer", "copy"))
    if not (ours and copy):
        return f"{shape:>14} not measured"
    share = 100 * copy["median_us"] / ours["median_us"]
    beside = f"{peer['median_us'] / ours['median_us']:6.3f} of {peer['variant']}" if peer else ""
    return (
        f"{shape:>14} {ours['median_us']:8.2f} us {share:4.0f}% of copy {beside} {ours['variant']}"
    )


def summary(files: Sequence[Path]) -> str:
    """Return how all shapes went: geometric means, and how far behind ours ever is."""
    peers, torch = [], []
    for path in files:
        ours, peer = fastest(path, "variant"), fastest(path, "peer")
        if not (ours and peer):
            continue
        peers.append(peer["median_us"] / ours["median_us"])
        rows = json.loads(path.read_text(encoding="utf-8"))
        eager = [row["median_us"] for row in rows if row["variant"] == "torch"]
        torch += [us / ours["median_us"] for us in eager if us]
    return (
        f"{len(peers)} shapes; best peer / ours: geometric mean {geometric_mean(peers):.3f}, least "
        f"{min(peers):.3f}; torch / ours: geometric mean {geometric_mean(torch):.3f}"
    )


def main() -> None:
    """Measure all shapes that were asked for, and print a line of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--drawn", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--out-dtype")
    asked = parser.parse_args()
    types = of_file_names(asked.dtype, asked.out_dtype or asked.dtype)
    asked.folder.mkdir(parents=True, exist_ok=True)
    named = [shape for shape in asked.shapes.split(",") if shape]
    for shape in (*named, *drawn(asked.drawn, asked.seed)):
        print(measure(shape, types, asked.folder, asked.seconds), flush=True)
    of_types = re.compile("-".join(("bench-[0-9]+x[0-9]+", *types)) + ".json")
    if files := [path for path in sorted(asked.folder.iterdir()) if of_types.fullmatch(path.name)]:
        print(summary(files))


if __name__ == "__main__":
    main()
