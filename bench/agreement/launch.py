"""Runs kernels once each on the GPU, with bare buffers, for a tool that watches them.

usage: python bench/agreement/launch.py JOB ...     a JOB is VARIANT@ROWSxCOLS or FILE.cu@ROWSxCOLS
Prints a line a job: what the float64 reference says of its output, or the fault.
"""

from __future__ import annotations

import sys

from kgen import gpu
from kgen.errors import KgenError
from kgen.evidence.inputs import make
from kgen.evidence.reference import criterion, judge
from kgen.execute import find_target, source_for
from kgen.launch import plan


def launch(job: str) -> str:
    """Run one job and return the verdict on its output."""
    name, _, shape = job.rpartition("@")
    rows, cols = (int(size) for size in shape.split("x"))
    source = source_for(find_target(name), rows, cols)
    x = make("uniform", rows, cols, element=source.spec.dtype)
    y = gpu.run(source, plan(source, rows, cols), x, is_bare=True)
    return judge(y, x, criterion(source.spec, cols)).reason or "right"


def main() -> None:
    """Run the jobs; a fault ends the process's context, so it ends the run."""
    for job in sys.argv[1:]:
        try:
            print(f"{job}: {launch(job)}", flush=True)
        except KgenError as error:
            print(f"{job}: {type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main()
