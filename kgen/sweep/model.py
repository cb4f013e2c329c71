"""A cost model: about how long a GPU takes, from counts and registers, where none is at hand.

It is a roofline with latencies. A launch costs

    overhead + path + last + max(work, (turns - 1) * path)

where `work` is the slowest of the rates that all blocks share (DRAM, caches, issue slots,
exponentials, shared memory with shuffles), and `path` what one warp waits for one after the other
(loads, exponentials, shuffles, shared memory, barriers, the meeting of a row's blocks). `turns` are
the waves of a launch times the rows that a block walks; a wave is what registers, shared memory and
the places for clusters have room for. The warps of the first wave start together and wait together,
so their path is not hidden; those of later waves overlap, and `last` is what of the last nothing
hides. By Little's law a path with few bytes in flight is what bounds the bandwidth of a launch with
few warps.

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
from kgen.specs.types import types_of
from kgen.store.measurement import Measurement
from kgen.sweep.model_gpu import REFERENCE_GPU, ModelGpu
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


# Of the times of the named versions on that GPU with a cold L2 in tests/sweep/h200_cold.json, by
# tests/sweep/test_model.py, which fails when the model no longer ranks so.
RANKING = Ranking(25, {(1024, 4096): 0.98, (1025, 257): 0.73, (256, 65536): 1.00})
# What a row's microsecond, over the KiB that a multiprocessor has in flight, slows DRAM by; one
# over its blocks, and over its warps; and what a kernel has of it that gets the usual bandwidth.
# They, EXPOSED and WARP_INSTRUCTIONS are fitted to the order of tests/sweep/h200_clusters.json.
FOR_LOADS, FOR_BLOCKS, FOR_WARPS, USUAL_STALL = 18, 0.19, 1.7, 0.17
# The share of a multiprocessor's warps that compute at the same time.
EXPOSED = 0.24
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
# And those of a warp that begins a row.
WARP_INSTRUCTIONS = 44


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
    return work_us(spec_of(row), counts, plan, resources, gpu)


def work_us(
    spec: Spec,
    counts: Mapping[str, float],
    plan: LaunchPlan,
    resources: Sequence[KernelResources] | None,
    gpu: ModelGpu = REFERENCE_GPU,
) -> float:
    """Return about how many microseconds a call of a resolved spec takes that does `counts`."""
    unknown: list[KernelResources | None] = [None] * len(plan.launches)
    kernels = resources or unknown
    warps = [launch.grid * ceil_div(launch.block, WARP_SIZE) for launch in plan.launches]
    total = 0.0
    for launch, kernel, number in zip(plan.launches, kernels, warps, strict=True):
        # The counts are of all launches together; each has its warps' share.
        share = number / sum(warps)
        work = {name: count * share for name, count in counts.items()}
        matrix_bytes = types_of(spec).moved_bytes * plan.rows * plan.cols * share
        total += _Launch(spec, plan, launch, kernel, number, work, matrix_bytes, gpu).us()
    return total


class _Place(NamedTuple):
    """Where data is found: its bandwidth and its latency."""

    gb_per_s: float
    cycles: int


@dataclass(frozen=True)
class _Launch:
    """One launch: its `counts`, and the bytes of the matrix that it has to read or write once."""

    spec: Spec
    plan: LaunchPlan
    launch: Launch
    kernel: KernelResources | None
    warps: int
    counts: dict[str, float]
    matrix_bytes: float
    gpu: ModelGpu

    def us(self) -> float:
        path = self._path_cycles() / self.gpu.mhz + self._meeting_us()
        turns = ceil_div(self.launch.grid, self._resident()) * self._rows_in_turn()
        before = self.gpu.launch_us + self._ramp_us() + path
        return before + self._last_us(path) + max(self._work_us(path), (turns - 1) * path)

    def _ramp_us(self) -> float:
        """Return what it takes until the first clusters have all begun."""
        is_clustered = self.launch.cluster_size > 1
        return self.gpu.cluster_block_us * self._resident() if is_clustered else 0.0

    def _last_us(self, path: float) -> float:
        """Return what the last wave waits, when there are no more others' rows to work on."""
        later = min(1.0, self.launch.grid / self._resident() - 1)
        if self._rows_in_turn() > 1:
            return path * (self._rows_in_turn() if later else 1.0)
        return path * later

    def _meeting_us(self) -> float:
        """Return what it takes that a row's blocks meet; more of them take longer."""
        usual = self.gpu.meeting_us.get(self.spec.row_split.word, 0.0)
        return usual * (0.96 + 0.04 * self.spec.blocks_per_row / 8)

    def _rows_in_turn(self) -> int:
        """Return the rows that a block goes through one after the other."""
        if not self.spec.row_loop.repeats:
            return 1
        rows_at_once = self.launch.grid * self.spec.rows_per_block / self.spec.blocks_per_row
        return math.ceil(self.plan.rows / rows_at_once)

    def _stall(self, path: float) -> float:
        """Return the share by which DRAM is slower than with everything in flight.

        What counts is what a multiprocessor has in flight while a row waits, warps to compute
        meanwhile, and blocks, of which some load while others store. The first wave has no such
        mixture, so a launch of one wave is not slowed.
        """
        spec, blocks = self.spec, self._resident() / self.gpu.multiprocessors
        threads = blocks * self.launch.block
        kib = threads * self._elements_in_flight() * spec.element_bytes / 1024
        stays = spec.in_registers or spec.in_shared
        trip = path if stays else self.gpu.dram_cycles / self.gpu.mhz
        waiting = FOR_LOADS * trip / kib + FOR_BLOCKS / blocks + FOR_WARPS * WARP_SIZE / threads
        later = 1 - self._resident() / (self.launch.grid * self._rows_in_turn())
        return later * max(0.0, waiting - USUAL_STALL)

    def _elements_in_flight(self) -> float:
        """Return the elements that a thread has on their way to it at once."""
        spec = self.spec
        if spec.cache.is_copied:
            return self.launch.shared_bytes / spec.element_bytes / self.launch.block
        return spec.values_kept if spec.in_registers else LOADS_IN_FLIGHT * spec.vec_size

    def _blocks_per_sm(self) -> int:
        """Return the blocks of a multiprocessor that are there at once."""
        return min(self._most_blocks(), ceil_div(self.launch.grid, self.gpu.multiprocessors))

    def _most_blocks(self) -> int:
        """Return how many blocks a multiprocessor has room for."""
        kernel = self.kernel
        shared = self.launch.shared_bytes + (kernel.static_shared_bytes if kernel else 0)
        registers = kernel.registers if kernel else 0
        return max(1, occupancy(self.gpu.arch, self.launch.block, registers, shared).blocks_per_sm)

    def _resident(self) -> int:
        """Return the blocks that are there at once: whole clusters of them."""
        size, grid = self.launch.cluster_size, self.launch.grid
        if size == 1:
            return min(grid, self._blocks_per_sm() * self.gpu.multiprocessors)
        at_one = self.gpu.clusters.get(size, self.gpu.multiprocessors // size)
        return min(grid, self._most_blocks() * at_one * size)

    def _again(self) -> _Place:
        """Return where a later scan finds the row: the nearest cache that holds all such rows."""
        gpu, spec = self.gpu, self.spec
        rows_per_block = spec.rows_per_block / spec.blocks_per_row
        row_bytes = spec.element_bytes * self.plan.cols
        rows = min(self.plan.rows, self._resident() * rows_per_block)
        if spec.row_split.kernel_per_phase:  # the scans are launches, each of which goes over all
            rows = self.plan.rows
        elif self._blocks_per_sm() * rows_per_block * row_bytes <= gpu.l1_bytes:
            return _Place(gpu.l1_gb_per_s, gpu.l1_cycles)
        if rows * row_bytes <= gpu.l2_bytes:
            return _Place(gpu.l2_gb_per_s, gpu.l2_cycles)
        return _Place(gpu.dram_gb_per_s, gpu.dram_cycles)

    def _memory_us(self, path: float) -> float:
        moved = SECTOR_BYTES * self.counts["global_sectors"]
        again = max(0.0, moved - self.matrix_bytes)
        return (
            self.matrix_bytes / self.gpu.dram_gb_per_s / 1e3 * (1 + self._stall(path))
            + again / self._again().gb_per_s / 1e3
        )

    def _work_us(self, path: float) -> float:
        """Return the time of the slowest of the rates that all blocks share."""
        counts, gpu = self.counts, self.gpu
        instructions = sum(counts[name] * number for name, number in INSTRUCTIONS.items())
        instructions += WARP_INSTRUCTIONS * self.warps * self._rows_in_turn()
        cycles = max(
            instructions / gpu.issue_slots,
            counts["exponentials"] * WARP_SIZE / gpu.exponential_lanes,
            (counts["shared_accesses"] + counts["shuffles"]) * WARP_SIZE / gpu.shared_lanes,
        )
        busy = min(self.launch.grid, gpu.multiprocessors)
        return max(self._memory_us(path), cycles / busy / gpu.mhz)

    def _path_cycles(self) -> float:
        """Return the cycles that a warp waits for a row, one thing after the other."""
        counts, gpu = self.counts, self.gpu
        rows = self.warps * self._rows_in_turn()
        return (
            self._load_cycles()
            + counts["exponentials"] / rows * self._exponential_cycles()
            + counts["shuffles"] / rows * gpu.shuffle_cycles
            + counts["shared_accesses"] / rows * gpu.shared_cycles
            + counts["barriers"] / rows * gpu.barrier_cycles
        )

    def _exponential_cycles(self) -> float:
        """Return the cycles of one; where a row came at once it waits for other warps alone."""
        if not self.spec.comes_at_once:
            return self.gpu.exponential_cycles
        warps = self._resident() / self.gpu.multiprocessors * self.launch.block / WARP_SIZE
        return WARP_SIZE / self.gpu.exponential_lanes * max(4.0, EXPOSED * warps)

    def _load_cycles(self) -> float:
        """Return the cycles of a warp's loads; the first scan's come from DRAM."""
        spec = self.spec
        scans = 1 if spec.row_split.kernel_per_phase else spec.scans
        loads = self.counts["global_loads"] / self.warps / (self._rows_in_turn() * scans)
        trips = 1 if spec.comes_at_once else math.ceil(loads / LOADS_IN_FLIGHT)
        return trips * (self.gpu.dram_cycles + (scans - 1) * self._again().cycles)
