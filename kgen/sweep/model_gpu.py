"""The GPU of the cost model: rates, latencies, and what it holds at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kgen.limits import H200_SMS


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
    # Clusters of so many blocks that are there at once, for each block that a multiprocessor has
    # room for: those of a cluster are on multiprocessors near each other, of which some are left.
    clusters: Mapping[int, int] = field(default_factory=dict)
    # What it costs that the blocks of a row meet in a launch, by the word of row_split.
    meeting_us: Mapping[str, float] = field(default_factory=dict)
    # What it takes that a block of a cluster begins, in the first wave.
    cluster_block_us: float = 0.0
    issue_slots: int = 4
    exponential_lanes: int = 16
    shared_lanes: int = 32
    dram_cycles: int = 600
    l2_cycles: int = 270
    l1_cycles: int = 40
    exponential_cycles: int = 40
    shuffle_cycles: int = 25
    shared_cycles: int = 30
    barrier_cycles: int = 62


REFERENCE_GPU = ModelGpu(
    name="NVIDIA H200",
    arch="sm_90",
    multiprocessors=H200_SMS,
    mhz=1980,
    dram_gb_per_s=4000,
    l2_gb_per_s=5500,
    l1_gb_per_s=H200_SMS * 64 * 1.98,
    l2_bytes=50 * 2**20,
    l1_bytes=256 * 2**10,
    launch_us=1.5,
    # Measured, as is what follows; of 16 it was 14 with room for two blocks.
    clusters={2: 66, 4: 30, 8: 15, 16: 7},
    cluster_block_us=0.0003,
    meeting_us={"cluster": 0.9, "cluster_async": 0.6, "co_resident": 1.1},
)
