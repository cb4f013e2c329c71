"""A scheduler and workers on this machine, in a process of their own and outside of the terminal.

`main` is that process, with arguments NUMBER [DEVICE...]. It prints the scheduler's address, and
ends with its standard input. A Ctrl-C in the terminal is for the sweep, which then
stops the workers: it must not reach them, nor Dask while it starts them.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import PIPE

from kgen.cachedir import temporary_dir
from kgen.errors import MissingTool, UsageError
from kgen.processes import python, running
from kgen.sweep.cluster.connect import GPU, quiet_dask

HERE = "127.0.0.1"
# No port is asked for that others may have.
SCHEDULER = {"host": HERE, "port": 0, "dashboard": False, "dashboard_address": f"{HERE}:0"}
# One thread measures while the other compiles.
WORKER = {
    "host": HERE,
    "nthreads": 2,
    "resources": {GPU: 1},
    "memory_limit": 0,
    "dashboard": False,
}


@contextmanager
def local_cluster(workers: int, on: str) -> Iterator[str]:
    """Start a scheduler and workers; give the scheduler's address.

    On the GPU each worker sees one of its own. Raises UsageError when $CUDA_VISIBLE_DEVICES shows
    fewer than that, MissingTool when Dask.distributed is not installed or cannot start them.
    """
    quiet_dask()
    devices = _devices(workers) if on == "gpu" else []
    with (
        tempfile.TemporaryFile(dir=temporary_dir()) as said,
        running(
            python(__name__, workers, *devices), stdin=PIPE, stdout=PIPE, stderr=said, text=True
        ) as process,
    ):
        assert process.stdin and process.stdout
        with process.stdin:  # whose end is the cluster's
            if not (address := process.stdout.readline().strip()):
                said.seek(0)
                raise MissingTool(f"no workers can be started here: {_last_line(said.read())}")
            yield address
        process.wait()


def _last_line(said: bytes) -> str:
    return (said.decode(errors="replace").strip() or "no message").splitlines()[-1]


def _devices(workers: int) -> list[str]:
    """Return the CUDA device of each worker."""
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    devices = shown.split(",") if shown else [str(number) for number in range(workers)]
    if len(devices) < workers:
        raise UsageError(
            f"--local-workers {workers}: each needs a GPU, and CUDA_VISIBLE_DEVICES={shown} shows "
            f"{len(devices)}"
        )
    return devices[:workers]


def main() -> None:
    """Be the cluster's process; each worker sees a device of its own, if any are given."""
    workers, devices = int(sys.argv[1]), sys.argv[2:]
    distributed = quiet_dask()
    environments = [{"CUDA_VISIBLE_DEVICES": device} for device in devices] or [{}] * workers
    nannies = {
        f"worker {number}": {"cls": distributed.Nanny, "options": WORKER | {"env": environment}}
        for number, environment in enumerate(environments)
    }
    scheduler = {"cls": distributed.Scheduler, "options": SCHEDULER}
    with distributed.SpecCluster(nannies, scheduler) as cluster:
        print(cluster.scheduler_address, flush=True)
        os.read(0, 1)
