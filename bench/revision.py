"""Times the named versions' files of a revision of git beside today's, in one run a shape.

usage: python bench/revision.py REVISION FILE.json [ROWSxCOLS ...]
Needs a GPU. Run it from the top of the checkout. A ratio is today's time over the revision's, from
samples paired by round; a version that cannot run on a shape is left out there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kgen.errors import UsageError
from kgen.files import write_atomically
from kgen.sources.edited import read_source
from kgen.sources.revisions import GENERATED, source_at
from kgen.sources.source import Source
from kgen.specs.versions import VERSIONS
from kgen.timing.bench import measure
from kgen.timing.candidates import of_targets
from kgen.timing.protocol import Protocol, find_protocol
from kgen.timing.provenance import Provenance, this_run
from kgen.timing.statistics import paired_ratio

SHAPES = ((1024, 4096), (1025, 257), (1024, 256), (128, 16384))


def pairs(revision: str) -> Iterator[tuple[str, Source, Source]]:
    """Yield each version for the GPU that the revision has, with its file there and today's."""
    for name, version in VERSIONS.items():
        if version.spec.is_host:
            continue
        try:
            before = source_at(revision, name)
        except UsageError:  # a version that the revision did not have
            continue
        yield name, before, read_source(Path(GENERATED, before.filename))


def compared(
    revision: str, shape: tuple[int, int], protocol: Protocol, provenance: Provenance
) -> list[dict[str, Any]]:
    """Time all pairs on a shape in one run; return a record of each that has both times."""
    found = list(pairs(revision))
    if not found:
        raise UsageError(f"{revision} has no file of a version: name a revision of git's")
    sources = [source for _, *both in found for source in both]
    timed = measure(of_targets(sources, *shape), protocol, provenance)
    records = []
    for (name, _, _), before, now in zip(found, timed[::2], timed[1::2], strict=True):
        if before.samples_us and now.samples_us:
            ratio = paired_ratio(now.samples_us, before.samples_us)
            records.append(
                {"version": name, "rows": shape[0], "cols": shape[1]}
                | {"before_us": before.median_us, "now_us": now.median_us}
                | {"registers_before": before.registers, "registers_now": now.registers}
                | {"ratio": [ratio.median, ratio.low, ratio.high]}
            )
    return records


def main() -> None:
    """Time all shapes, write the file, and print the extremes of each shape."""
    revision, file, *named = sys.argv[1:]
    shapes = [tuple(map(int, text.split("x"))) for text in named] or SHAPES
    protocol, provenance = find_protocol("rotated", "cold", budget_s=6.0), this_run()
    found = [compared(revision, (rows, cols), protocol, provenance) for rows, cols in shapes]
    records = [record for of_shape in found for record in of_shape]
    content = {"machine": asdict(provenance), "method": str(protocol), "revision": revision}
    write_atomically(Path(file), json.dumps(content | {"ratios": records}, indent=1) + "\n")
    for of_shape in found:
        ordered = sorted(of_shape, key=lambda record: record["ratio"][0])
        told = (f"{record['version']} {record['ratio'][0]:.3f}" for record in ordered)
        print(f"{of_shape[0]['rows']} x {of_shape[0]['cols']}: {', '.join(told)}")


if __name__ == "__main__":
    main()
