"""A cost model: about how long a GPU takes, from counts and registers, where none is at hand.

It is a roofline with latencies. A launch costs

    overhead + path + max(work, (waves - 1) * path)

where `work` is the slowest of the rates that all blocks share (DRAM, caches, issue slots,
exponentials, shared memory with shuffles), and `path` what one warp waits for one after the other
(loads, exponentials, shuffles, shared memory, barriers). The warps of the first wave start
together and wait together, so their path is not hidden; those of later waves overlap. By Little's
law a path with few bytes in flight is what bounds the bandwidth of a launch with few warps.

It ranks; a rank is no time. It knows nothing of bank conflicts, spills, clocks under load, or what
the compiler makes of a loop.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kgen.launch import Launch, LaunchPlan
from kgen.limits import WARP_SIZE
from kgen.specs.formula import ceil_div
from kgen.specs.spec import Spec
from kgen.store.measurement import Measurement
from kgen.sweep.rows import spec_of
from kgen.toolchain.binary import KernelResources
from kgen.toolchain.occupancy import occupancy

SECTOR_BYTES = 32
COUNTS = (
    "global_loads",
    "global_stores",
    "global_sectors",
    "shared_accesses",
    "exponentials",
    "shuffles",
    "barriers",
)


@dataclass(frozen=True, kw_only=True)
class ModelGpu:
    """The GPU of the model. Rates are a multiprocessor's a cycle, latencies cycles of it.

    Bandwidths are what a good kernel gets rather than what is promised, in 10^9 bytes a second of
    the whole GPU. `launch_us` is a launch inside a graph, from the end of the one before.
    """

    name: str
    arch: str
    multiprocessors: int
    mhz: int
    dram_gb_per_s: float
    l2_gb_per_s: float
    l1_gb_per_s: float
    l2_bytes: int
    l1_bytes: int
    launch_us: float
    issue_slots: int = 4
    exponential_lanes: int = 16
    shared_lanes: int = 32
    dram_cycles: int = 600
    l2_cycles: int = 270
    l1_cycles: int = 40
    exponential_cycles: int = 40
    shuffle_cycles: int = 25
    shared_cycles: int = 30
    barrier_cycles: int = 60


@dataclass(frozen=True)
class Ranking:
    """How well the model's order agrees with times: Spearman's rank correlation, shape by shape.

    1 is the same order, 0 none; `medians` is how many times it was compared with.
    """

    medians: int
    by_shape: Mapping[tuple[int, int], float]

    def __str__(self) -> str:
        """Return it as a sentence, for those who read the model's order."""
        found = sorted(self.by_shape.items(), key=lambda entry: -entry[1])
        shapes = ", ".join(f"{rho:.2f} at {rows} x {cols}" for (rows, cols), rho in found)
        return (
            f"Beside {self.medians} medians measured on one its rank correlation is {shapes} "
            "(1 is the same order)."
        )


REFERENCE_GPU = ModelGpu(
    name="NVIDIA H200",
    arch="sm_90",
    multiprocessors=132,
    mhz=1980,
    dram_gb_per_s=4000,
    l2_gb_per_s=5500,
    l1_gb_per_s=132 * 64 * 1.98,
    l2_bytes=50 * 2**20,
    l1_bytes=256 * 2**10,
    launch_us=1.5,
)
# Of the times of the named versions on that GPU with a cold L2 in tests/sweep/h200_cold.json, by
# tests/sweep/test_model.py, which fails when the model no longer ranks so.
RANKING = Ranking(25, {(1024, 4096): 0.98, (1025, 257): 0.58, (256, 65536): 1.00})
# Loads that a loop has in flight: compilers unroll by four.
LOADS_IN_FLIGHT = 4
# Instructions that come with one of a kind: addresses, loop counters, and the arithmetic of expf.
INSTRUCTIONS = {
    "global_loads": 4,
    "global_stores": 4,
    "shared_accesses": 2,
    "exponentials": 10,
    "shuffles": 2,
    "barriers": 1,
}


def model_us(
    row: Measurement,
    plan: LaunchPlan,
    resources: Sequence[KernelResources] | None,
    gpu: ModelGpu = REFERENCE_GPU,
) -> float:
    """Return about how many microseconds a call takes on `gpu` with a cold L2 cache.

    `row` has the counts and the spec, `plan` the launches of the same shape; `resources` of the
    launches' kernels limit the occupancy, which without them threads alone do. Raises ValueError
    when the row has no counts or no spec.
    """
    counts = {name: getattr(row, name) for name in COUNTS}
    if not row.spec or None in counts.values():
        raise ValueError(f"{row.variant} was not counted, so there is nothing to model")
    unknown: list[KernelResources | None] = [None] * len(plan.launches)
    kernels = resources or unknown
    warps = [launch.grid * ceil_div(launch.block, WARP_SIZE) for launch in plan.launches]
    total = 0.0
    for launch, kernel, number in zip(plan.launches, kernels, warps, strict=True):
        # The counts are of all launches together; each has its warps' share.
        share = number / sum(warps)
        work = {name: count * share for name, count in counts.items()}
        matrix_bytes = 2 * spec_of(row).element_bytes * row.rows * row.cols * share
        total += _Launch(spec_of(row), row, launch, kernel, number, work, matrix_bytes, gpu).us()
    return total


class _Place(NamedTuple):
    """Where data is found: its bandwidth and its latency."""

    gb_per_s: float
    cycles: int


@dataclass(frozen=True)
class _Launch:
    """One launch: its `counts`, and the bytes of the matrix that it has to read or write once."""

    spec: Spec
    row: Measurement
    launch: Launch
    kernel: KernelResources | None
    warps: int
    counts: dict[str, float]
    matrix_bytes: float
    gpu: ModelGpu

    def us(self) -> float:
        path = self._path_cycles() / self.gpu.mhz
        hidden = (self._waves() - 1) * path
        return self.gpu.launch_us + path + max(self._work_us(), hidden)

    def _blocks_per_sm(self) -> int:
        """Return the blocks of a multiprocessor that are there at once."""
        kernel = self.kernel
        shared = self.launch.shared_bytes + (kernel.static_shared_bytes if kernel else 0)
        registers = kernel.registers if kernel else 0
        most = occupancy(self.gpu.arch, self.launch.block, registers, shared).blocks_per_sm
        return max(1, min(most, ceil_div(self.launch.grid, self.gpu.multiprocessors)))

    def _waves(self) -> int:
        return ceil_div(self.launch.grid, self._blocks_per_sm() * self.gpu.multiprocessors)

    def _again(self) -> _Place:
        """Return where a later scan finds the row: the nearest cache that holds all such rows."""
        gpu, row_bytes = self.gpu, self.spec.element_bytes * self.row.cols
        rows_per_sm = self._blocks_per_sm() * self.spec.rows_per_block
        rows = min(self.row.rows, rows_per_sm * gpu.multiprocessors)
        if (
            self.spec.row_split.kernel_per_phase
        ):  # the scans are launches, each of which goes over all
            rows = self.row.rows
        elif rows_per_sm * row_bytes <= gpu.l1_bytes:
            return _Place(gpu.l1_gb_per_s, gpu.l1_cycles)
        if rows * row_bytes <= gpu.l2_bytes:
            return _Place(gpu.l2_gb_per_s, gpu.l2_cycles)
        return _Place(gpu.dram_gb_per_s, gpu.dram_cycles)

    def _memory_us(self) -> float:
        moved = SECTOR_BYTES * self.counts["global_sectors"]
        again = max(0.0, moved - self.matrix_bytes)
        return (
            self.matrix_bytes / self.gpu.dram_gb_per_s / 1e3 + again / self._again().gb_per_s / 1e3
        )

    def _work_us(self) -> float:
        """Return the time of the slowest of the rates that all blocks share."""
        counts, gpu = self.counts, self.gpu
        instructions = sum(counts[name] * number for name, number in INSTRUCTIONS.items())
        cycles = max(
            instructions / gpu.issue_slots,
            counts["exponentials"] * WARP_SIZE / gpu.exponential_lanes,
            (counts["shared_accesses"] + counts["shuffles"]) * WARP_SIZE / gpu.shared_lanes,
        )
        busy = min(self.launch.grid, gpu.multiprocessors)
        return max(self._memory_us(), cycles / busy / gpu.mhz)

    def _path_cycles(self) -> float:
        """Return the cycles that a warp waits, one thing after the other."""
        counts, gpu = self.counts, self.gpu
        return (
            self._load_cycles()
            + counts["exponentials"] / self.warps * gpu.exponential_cycles
            + counts["shuffles"] / self.warps * gpu.shuffle_cycles
            + counts["shared_accesses"] / self.warps * gpu.shared_cycles
            + counts["barriers"] / self.warps * gpu.barrier_cycles
        )

    def _load_cycles(self) -> float:
        """Return the cycles of a warp's loads; the first scan's come from DRAM."""
        spec = self.spec
        scans = 1 if spec.row_split.kernel_per_phase else spec.scans
        rows = 1
        if not spec.row_split.kernel_per_phase:
            rows = ceil_div(self.row.rows, self.launch.grid * spec.rows_per_block)
        loads = self.counts["global_loads"] / self.warps / (rows * scans)
        trips = 1 if spec.in_registers else math.ceil(loads / LOADS_IN_FLIGHT)
        return rows * trips * (self.gpu.dram_cycles + (scans - 1) * self._again().cycles)
