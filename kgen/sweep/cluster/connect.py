"""Reaches a Dask cluster."""

from __future__ import annotations

import importlib
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kgen.errors import MissingTool, UsageError
from kgen.text import install_hint

GPU = "GPU"
CONNECT_S = 10
# Of other addresses Dask makes a client that takes long to end, and not without a traceback.
_ADDRESS = re.compile(r"((tcp|tls|ws|wss)://)?[^/\s]+:[0-9]{1,5}|inproc://\S+")


@contextmanager
def connected(scheduler: str) -> Iterator[Any]:
    """Give a client of the scheduler at an address such as tcp://host:8786.

    Raises UsageError when there is none, MissingTool when Dask.distributed is not installed.
    """
    distributed = quiet_dask()
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


def quiet_dask() -> Any:
    """Return the package, quiet: what goes wrong with workers is the sweep's to tell.

    Raises MissingTool when it is not installed.
    """
    try:
        dask, distributed = map(importlib.import_module, ("dask", "distributed"))
    except ImportError as error:
        raise MissingTool(
            f"Dask.distributed is not installed (no module {error.name}): "
            f"{install_hint('cluster')}"
        ) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    # Binaries travel with tasks: some megabytes are not a mistake.
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"})
    return distributed
