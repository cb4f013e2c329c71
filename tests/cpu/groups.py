"""Small kernels of blocks that run at the same time, and running them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kgen import cpu
from kgen.cpu.observation import Observation
from kgen.errors import KernelFault

from .conftest import marked_line

RunKernel = Callable[..., Any]
THREADS = 64
BLOCKS = 4

_HEAD = """
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/ptx>
#include <cuda_pipeline.h>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

"""
_CLUSTER_HEAD = _HEAD + """
extern "C" __global__ void __cluster_dims__(4) k(const float* x, float* y, unsigned* w, int cols) {
    cg::cluster_group cluster = cg::this_cluster();
    const int t = threadIdx.x;
    const unsigned rank = cluster.block_rank();
"""
_GRID_HEAD = _HEAD + """
extern "C" __global__ void k(const float* x, float* y, unsigned* w, int cols) {
    const int t = threadIdx.x;
"""
_ARGS = ("x", "y", "workspace", "cols")


def cluster_text(body: str) -> str:
    """Return a kernel that clusters of four blocks run."""
    return f"{_CLUSTER_HEAD}{body}\n}}\n"


def grid_text(body: str) -> str:
    """Return a kernel without clusters."""
    return f"{_GRID_HEAD}{body}\n}}\n"


def run_cluster(run_kernel: RunKernel, body: str, grid: int = BLOCKS, **options: Any) -> Any:
    """Run clusters of four blocks of 64 threads; by default one cluster."""
    options = {"args": _ARGS, "workspace_bytes": 4096, "cluster_size": BLOCKS, **options}
    return run_kernel(cluster_text(body), grid=grid, block=THREADS, **options)


def run_grid(run_kernel: RunKernel, body: str, grid: int = 1, **options: Any) -> Any:
    """Run blocks of 64 threads; by default one."""
    options = {"args": _ARGS, "workspace_bytes": 4096, **options}
    return run_kernel(grid_text(body), grid=grid, block=THREADS, **options)


def messages_of(observation: Observation) -> list[str]:
    """Return what was found; that y is not written everywhere is no matter here."""
    faults = [fault.message for fault in observation.memory_faults if fault.what != "unwritten"]
    return faults + [race.message for race in observation.races]


def found(run: Callable[..., Any], run_kernel: RunKernel, body: str, **options: Any) -> list[str]:
    """Return what an observed run of a body finds."""
    return messages_of(run(run_kernel, body, execute=cpu.observe, **options))


def fault_of(run: Callable[..., Any], run_kernel: RunKernel, body: str, **options: Any) -> str:
    """Return the fault's message behind the line that ends in `// here`, which it must name."""
    with pytest.raises(KernelFault) as caught:
        run(run_kernel, body, **options)
    text = cluster_text(body) if run is run_cluster else grid_text(body)
    place = f"kernel.cu:{marked_line(text)}: kernel k, block "
    assert str(caught.value).startswith(place), str(caught.value)
    return str(caught.value).removeprefix(place)
