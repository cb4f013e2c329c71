"""Facts about variants that carry no noise: counts, occupancy, what a profiler says."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from kgen.studies.verdicts import NotMeasured

if TYPE_CHECKING:
    from kgen.cpu.observation import Counts

# The metrics of a variant on a shape: (variant, rows, cols) -> {name: value}.
Profiles = Mapping[tuple[str, int, int], Mapping[str, float | None]]


class Metric(StrEnum):
    """A figure of a variant on a shape.

    The CPU executor counts the first ones in all launches: sectors of 32 aligned bytes, once an
    instruction, a lane's exponentials, the rest in warp instructions. The spec alone
    says VECTORS, the most vectors of a row that one thread walks, and nvcc the theoretical
    occupancy, in percent. Only a profiler sees the others, which have the names that
    `kgen profile` gives them; the issue rate is in instructions a cycle of a scheduler.
    """

    LOADS = "global_loads"
    STORES = "global_stores"
    ACCESSES = "global_accesses"
    REDUCTIONS = "warp_reductions"
    BARRIERS = "barriers"
    SECTORS = "global_sectors"
    EXPONENTIALS = "thread_exponentials"
    VECTORS = "vectors_per_thread"
    OCCUPANCY = "theoretical_occupancy_percent"
    INSTRUCTIONS = "warp_instructions"
    ACHIEVED_OCCUPANCY = "achieved_occupancy_percent"
    ISSUE_RATE = "issued_warps"
    DRAM_READ = "dram_bytes_read"
    L1_HITS = "l1_hit_percent"
    LONG_SCOREBOARD = "stall_long_scoreboard_percent"
    BARRIER = "stall_barrier_percent"
    UNIFORMITY = "uniform_branch_percent"

    @property
    def is_profiled(self) -> bool:
        """Whether only a profiler sees it."""
        return self not in (*COUNTED, Metric.VECTORS, Metric.OCCUPANCY)


COUNTED = (
    *(Metric.LOADS, Metric.STORES, Metric.ACCESSES, Metric.REDUCTIONS),
    *(Metric.BARRIERS, Metric.SECTORS, Metric.EXPONENTIALS),
)


class Facts:
    """Looks facts up: counts on this machine, compiles for `arch`, takes the rest as given."""

    def __init__(self, arch: str, profiles: Profiles) -> None:
        self.arch = arch
        self.profiles = profiles
        self._counts: dict[tuple[str, int, int], Counts] = {}

    def quotient(self, metric: Metric, a: str, b: str, rows: int, cols: int) -> float:
        """Return a's metric, over b's unless b is ''. Raises as `value` does."""
        value = self.value(metric, a, rows, cols)
        if not b:
            return value
        over = self.value(metric, b, rows, cols)
        if not over:
            raise NotMeasured(f"{metric} of {b} is 0, which nothing is a multiple of")
        return value / over

    def value(self, metric: Metric, variant: str, rows: int, cols: int) -> float:
        """Return a variant's metric on a rows x cols matrix.

        Raises NotMeasured when a profile is needed and not given, MissingTool without the compiler
        that the metric takes, and what running or compiling raises.
        """
        if metric.is_profiled:
            return self._profiled(metric, variant, rows, cols)
        if metric in COUNTED:
            return int(getattr(self.counts(variant, rows, cols), metric))
        if metric is Metric.OCCUPANCY:
            return self._occupancy(variant, rows, cols)
        return _vectors_per_thread(variant, cols)

    def counts(self, variant: str, rows: int, cols: int) -> Counts:
        """Return what all launches of a variant do, observed once on the CPU."""
        from kgen.evidence.inputs import make
        from kgen.execute import find_target, observe

        key = (variant, rows, cols)
        if key not in self._counts:
            self._counts[key] = observe(find_target(variant), make("uniform", rows, cols)).total
        return self._counts[key]

    def _profiled(self, metric: Metric, variant: str, rows: int, cols: int) -> float:
        profile = self.profiles.get((variant, rows, cols), {})
        value = profile.get(metric)
        if value is None:
            raise NotMeasured(f"{metric} of {variant} needs kgen profile")
        return value

    def _occupancy(self, variant: str, rows: int, cols: int) -> float:
        from kgen.execute import find_target, source_for
        from kgen.outputs.build import kernel_reports
        from kgen.toolchain import compile_cubin

        source = source_for(find_target(variant), rows, cols)
        kernels = kernel_reports(source, compile_cubin(source, self.arch), cols)
        return 100 * min(kernel.occupancy for kernel in kernels)


def _vectors_per_thread(variant: str, cols: int) -> int:
    from kgen.specs.variants import checked

    return checked(variant).items_for(cols)
