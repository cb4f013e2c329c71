"""Reaches a Dask cluster, or starts one on this machine."""

from __future__ import annotations

import importlib
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kgen.errors import MissingTool, UsageError

GPU = "GPU"
# One thread measures while the other compiles.
LOCAL_THREADS = 2
CONNECT_S = 10
# Of other addresses Dask makes a client that takes long to end, and not without a traceback.
_ADDRESS = re.compile(r"((tcp|tls|ws|wss)://)?[^/\s]+:[0-9]{1,5}|inproc://\S+")
# A Ctrl-C in the terminal reaches the workers, too; it is for the sweep, which then stops them.
IGNORE_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"


@contextmanager
def connected(scheduler: str) -> Iterator[Any]:
    """Give a client of the scheduler at an address such as tcp://host:8786.

    Raises UsageError when there is none, MissingTool when Dask.distributed is not installed.
    """
    distributed = _dask()
    try:
        if not _ADDRESS.fullmatch(scheduler):
            raise ValueError(scheduler)
        client = distributed.Client(scheduler, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError):
        raise UsageError(
            f"--scheduler {scheduler}: no scheduler answers there; start one with `dask scheduler` "
            "and give the address that it prints, tcp://host:8786"
        ) from None
    with client:
        yield client


@contextmanager
def local_cluster(workers: int, on: str) -> Iterator[str]:
    """Start a scheduler and workers in processes of their own; give the scheduler's address.

    On the GPU each worker sees one of its own. Raises UsageError when $CUDA_VISIBLE_DEVICES shows
    fewer than that, MissingTool when Dask.distributed is not installed.
    """
    distributed = _dask()

    common = {
        "host": "127.0.0.1",
        "nthreads": LOCAL_THREADS,
        "resources": {GPU: 1},
        "memory_limit": 0,
        "preload": [IGNORE_INTERRUPTS],
        "dashboard": False,
        "silence_logs": logging.CRITICAL,
    }
    devices = _devices(workers) if on == "gpu" else [""] * workers
    specs = {
        f"worker {number}": {
            "cls": distributed.Nanny,
            "options": common | ({"env": {"CUDA_VISIBLE_DEVICES": device}} if device else {}),
        }
        for number, device in enumerate(devices)
    }
    here = "127.0.0.1"
    options = {"host": here, "port": 0, "dashboard": False, "dashboard_address": f"{here}:0"}
    scheduler = {"cls": distributed.Scheduler, "options": options}
    with distributed.SpecCluster(specs, scheduler, silence_logs=logging.CRITICAL) as cluster:
        yield cluster.scheduler_address


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


def _dask() -> Any:
    """Return the package, quiet: what goes wrong with workers is the sweep's to tell."""
    try:
        dask, distributed = map(importlib.import_module, ("dask", "distributed"))
    except ImportError as error:
        raise MissingTool(
            f"Dask.distributed is not installed (no module {error.name}): "
            'pip install "kgen[cluster]"'
        ) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    # Binaries travel with tasks: some megabytes are not a mistake.
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"})
    return distributed
