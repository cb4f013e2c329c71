"""Running small kernels, and finding the line that a fault must name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kgen import cpu
from kgen.launch import Launch, LaunchPlan
from kgen.sources.source import Source

INCLUDES = "#include <cfloat>\n#include <cmath>\n#include <cstddef>\n#include <cstdint>\n"


@pytest.fixture(autouse=True)
def with_cxx(cxx: None) -> None:
    """Skip the tests where no C++ compiler is installed."""


@pytest.fixture
def make_source() -> Callable[..., Source]:
    """Make a source of CUDA text (or host text) that defines the named kernels."""

    def make(
        text: str,
        *kernels: str,
        is_host: bool = False,
        stem: str = "kernel",
        path: Path | None = None,
    ) -> Source:
        spec: Any = SimpleNamespace(is_host=is_host, requires="")
        return Source(spec, stem, INCLUDES + text, kernels, path)

    return make


@pytest.fixture
def run_kernel(make_source: Callable[..., Source]) -> Callable[..., NDArray[np.float32]]:
    """Run the kernel `k` of a text once; by default one block, with x, y, rows and cols.

    With `execute=cpu.observe` it is observed.
    """

    def run(
        text: str,
        x: NDArray[np.float32] | None = None,
        *,
        grid: int = 1,
        block: int = 64,
        shared_bytes: int = 0,
        args: tuple[str, ...] = ("x", "y", "rows", "cols"),
        workspace_bytes: int = 0,
        cluster_size: int = 1,
        is_co_resident: bool = False,
        path: Path | None = None,
        execute: Callable[..., Any] = cpu.run,
        **options: Any,
    ) -> Any:
        if x is None:
            x = np.arange(block, dtype=np.float32).reshape(1, block)
        launch = Launch("k", grid, block, shared_bytes, args, cluster_size, 0, is_co_resident)
        plan = LaunchPlan(*x.shape, (launch,), workspace_bytes)
        return execute(make_source(text, "k", path=path), plan, x, **options)

    return run


def marked_line(text: str, marker: str = "// here") -> int:
    """Return the line of the source made from `text` that carries the marker."""
    lines = (INCLUDES + text).splitlines()
    (number,) = (i for i, line in enumerate(lines, start=1) if line.endswith(marker))
    return number
