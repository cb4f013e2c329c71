"""What a profile tells of a kernel, in one table: how it is called, and what ncu calls it.

The names are those of ncu on sm_75 to sm_90; `RENAMED` has what newer GPUs call some of them. ncu
says `n/a` of a metric that the GPU has not, so it is asked for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

# ncu's name of a metric -> its value in ncu's base units (ns, bytes, %).
Measured = Mapping[str, float]


class Combine(Enum):
    """What several launches of one softmax call make together.

    MEAN is a weighted one: sum(value * weight) / sum(over * weight) over the launches.
    """

    SUM = "sum"
    MEAN = "mean"
    MOST = "most"
    LEAST = "least"


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One row of the table. `key` is its name in JSON, `name` and `unit` what the table shows.

    The value is that of ncu's metric `ncu`, divided by ncu's `over` where that is named, times
    `scale`. Launches are put together as `how` says; `weight` names the ncu metric that says how
    much each of them counts in a MEAN. `decimals` are those shown; with none it is an integer.
    """

    key: str
    name: str
    unit: str = ""
    ncu: str
    over: str = ""
    how: Combine = Combine.SUM
    weight: str = ""
    scale: float = 1.0
    decimals: int = 0

    @property
    def ncu_names(self) -> tuple[str, ...]:
        """The ncu metrics that the value takes."""
        return tuple(name for name in (self.ncu, self.over, self.weight) if name)


_TIME = "gpu__time_duration.sum"
_INSTRUCTIONS = "smsp__inst_executed.sum"
_WARP_CYCLES = "smsp__average_warp_latency_per_inst_issued.ratio"


def _hits(key: str, name: str, unit: str) -> Metric:
    """Hits over all sectors looked up: launches that look up more count for more.

    ncu counts the two in different passes, so a cache that is left warm may show more than 100.
    """
    return Metric(
        key=key,
        name=name,
        unit="%",
        ncu=f"{unit}__t_sector_hit_rate.pct",
        how=Combine.MEAN,
        weight=f"{unit}__t_sectors.sum",
        decimals=2,
    )


def _stall(reason: str) -> Metric:
    """The share of a warp's time between two of its instructions that it waits for `reason`.

    Both cycle counts are an instruction's, so launches that execute more count for more.
    """
    return Metric(
        key=f"stall_{reason}_percent",
        name=f"stalled on {reason.replace('_', ' ')}",
        unit="%",
        ncu=f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio",
        over=_WARP_CYCLES,
        how=Combine.MEAN,
        weight=_INSTRUCTIONS,
        scale=100,
        decimals=2,
    )


def _in_time(key: str, name: str, unit: str, ncu: str) -> Metric:
    """A mean over cycles, so launches that take longer count for more."""
    return Metric(
        key=key, name=name, unit=unit, ncu=ncu, how=Combine.MEAN, weight=_TIME, decimals=2
    )


METRICS = (
    Metric(key="duration_us", name="duration", unit="us", ncu=_TIME, scale=1e-3, decimals=2),
    Metric(
        key="global_loads",
        name="global loads",
        ncu="smsp__sass_inst_executed_op_global_ld.sum",
    ),
    Metric(
        key="global_stores",
        name="global stores",
        ncu="smsp__sass_inst_executed_op_global_st.sum",
    ),
    Metric(key="warp_instructions", name="warp instructions", ncu=_INSTRUCTIONS),
    Metric(key="dram_bytes_read", name="DRAM reads", unit="bytes", ncu="dram__bytes_read.sum"),
    Metric(key="dram_bytes_written", name="DRAM writes", unit="bytes", ncu="dram__bytes_write.sum"),
    _hits("l1_hit_percent", "L1 hits", "l1tex"),
    _hits("l2_hit_percent", "L2 hits", "lts"),
    _stall("long_scoreboard"),
    _stall("barrier"),
    _stall("short_scoreboard"),
    _stall("wait"),
    _stall("math_pipe_throttle"),
    _stall("lg_throttle"),
    Metric(
        key="warp_cycles_per_instruction",
        name="warp cycles per instruction",
        ncu=_WARP_CYCLES,
        how=Combine.MEAN,
        weight=_INSTRUCTIONS,
        decimals=2,
    ),
    _in_time(
        "achieved_occupancy_percent",
        "achieved occupancy",
        "%",
        "sm__warps_active.avg.pct_of_peak_sustained_active",
    ),
    Metric(
        key="theoretical_occupancy_percent",
        name="theoretical occupancy",
        unit="%",
        ncu="sm__maximum_warps_per_active_cycle_pct",
        how=Combine.LEAST,
        decimals=2,
    ),
    _in_time(
        "active_warps", "active warps", "a scheduler", "smsp__warps_active.avg.per_cycle_active"
    ),
    _in_time(
        "eligible_warps",
        "eligible warps",
        "a scheduler",
        "smsp__warps_eligible.avg.per_cycle_active",
    ),
    _in_time(
        "issued_warps", "issued warps", "a scheduler", "smsp__issue_active.avg.per_cycle_active"
    ),
    Metric(
        key="registers",
        name="registers",
        unit="a thread",
        ncu="launch__registers_per_thread",
        how=Combine.MOST,
    ),
    Metric(
        key="uniform_branch_percent",
        name="uniform branches",
        unit="%",
        ncu="smsp__sass_branch_targets_threads_uniform.sum",
        over="smsp__sass_branch_targets.sum",
        how=Combine.MEAN,
        scale=100,
        decimals=2,
    ),
)

# Blackwell's names of what METRICS names as the GPUs before it do.
RENAMED = {
    "dram__bytes_read.sum": "dram__bytes_op_read.sum",
    "dram__bytes_write.sum": "dram__bytes_op_write.sum",
}


_PUT_TOGETHER: dict[Combine, Callable[[list[float]], float]] = {
    Combine.SUM: sum,
    Combine.MOST: max,
    Combine.LEAST: min,
}


def ncu_metrics() -> list[str]:
    """Return the names of all metrics that ncu is to collect, each once."""
    names = [name for metric in METRICS for name in metric.ncu_names]
    return list(dict.fromkeys([*names, *RENAMED.values()]))


def value_of(metric: Metric, launches: Sequence[Measured]) -> float | None:
    """Return the metric's value over all launches of a call.

    None when ncu measured one of its parts in none or not all of the launches, or when there was
    nothing to take a share of.
    """
    if not launches or any(name not in launch for launch in launches for name in metric.ncu_names):
        return None
    values = [launch[metric.ncu] for launch in launches]
    if metric.how in _PUT_TOGETHER:
        return _rounded(metric, _PUT_TOGETHER[metric.how](values))
    weights = [launch[metric.weight] if metric.weight else 1.0 for launch in launches]
    overs = [launch[metric.over] if metric.over else 1.0 for launch in launches]
    whole = sum(over * weight for over, weight in zip(overs, weights, strict=True))
    part = sum(value * weight for value, weight in zip(values, weights, strict=True))
    return _rounded(metric, part / whole) if whole else None


def _rounded(metric: Metric, value: float) -> float:
    return round(value * metric.scale, 6 if metric.decimals else None)
