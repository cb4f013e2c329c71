"""Runs softmax calls on the GPU once each: the program that ncu watches.

usage: python -m kgen.profile.launch [--templates=DIR] JOB ...
A JOB is VARIANT@ROWSxCOLS or FILE.cu@ROWSxCOLS.
It is silent when all is well. On the first failure, also a wrong result, it says why on standard
error, `kgen: ` in front, and ends with the error's exit code.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kgen import gpu
from kgen.errors import CheckFailed, KgenError
from kgen.evidence.inputs import make
from kgen.evidence.reference import criterion_for, judge
from kgen.launch import plan
from kgen.overlay import OURS, overlay
from kgen.profile.job import TEMPLATES, ProfileTarget


def launch(job: ProfileTarget) -> None:
    """Run one job, with buffers that nothing but its kernels touches.

    Raises CheckFailed when the output is wrong, and what compiling and running raise.
    """
    source = job.source()
    x = make("uniform", job.rows, job.cols, element=source.spec.dtype)
    y = gpu.run(source, plan(source, job.rows, job.cols), x, is_bare=True)
    verdict = judge(y, x, criterion_for(source, job.cols))
    if not verdict.ok:
        raise CheckFailed(f"{job} is wrong: {verdict.reason}")


def main() -> None:
    """Run the jobs of the command line in their order."""
    try:
        jobs, folder = sys.argv[1:], ""
        if jobs and jobs[0].startswith(TEMPLATES):
            folder = jobs.pop(0).removeprefix(TEMPLATES)
        for text in jobs:
            launch(ProfileTarget.read(text, overlay(Path(folder)) if folder else OURS))
    except KgenError as error:
        print(f"kgen: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
