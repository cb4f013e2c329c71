"""Launch plans: which kernels run, with how many blocks and threads, on which buffers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Launch:
    """One kernel launch: a one-dimensional grid of `grid` blocks of `block` threads.

    `shared_bytes` is the dynamic shared memory of a block. `args` names the kernel's arguments in
    order, each one of `x` (const float*), `y` (float*), `workspace` (a device pointer), `rows`
    and `cols` (int).
    """

    kernel: str
    grid: int
    block: int
    shared_bytes: int
    args: tuple[str, ...]


@dataclass(frozen=True)
class LaunchPlan:
    """The launches of one softmax call on a rows x cols matrix, in stream order.

    `workspace_bytes` of device memory, set to zero before the first launch of every call, are
    passed where a launch names `workspace`. An empty matrix has no launches.
    """

    rows: int
    cols: int
    launches: tuple[Launch, ...]
    workspace_bytes: int = 0
