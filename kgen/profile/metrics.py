"""What a profile tells of a kernel, in one table: how it is called, and what ncu calls it.

The names are those of ncu on sm_75 to sm_90; `RENAMED` has what newer GPUs call some of them. ncu
says `n/a` of a metric that the GPU has not, so it is asked for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

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


@dataclass(frozen=True)
class Metric:
    """One row of the table. `key` is its name in JSON, `name` and `unit` what the table shows.

    The value is that of ncu's metric `ncu`, divided by ncu's `over` where that is named, times
    `scale`. Launches are put together as `how` says; `weight` names the ncu metric that says how
    much each of them counts in a MEAN. `decimals` are those shown; with none it is an integer.
    """

    key: str
    name: str
    unit: str
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
_OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
_ELIGIBLE = "smsp__warps_eligible.avg.per_cycle_active"


def _mean(key: str, name: str, unit: str, ncu: str, weight: str = _TIME, **more: Any) -> Metric:
    """A mean over cycles, so launches that take longer count for more, unless by `weight`."""
    return Metric(key, name, unit, ncu, how=Combine.MEAN, weight=weight, decimals=2, **more)


def _hits(key: str, name: str, unit: str) -> Metric:
    """Hits over all sectors looked up: launches that look up more count for more.

    ncu counts the two in different passes, so a cache that is left warm may show more than 100.
    """
    return _mean(key, name, "%", f"{unit}__t_sector_hit_rate.pct", f"{unit}__t_sectors.sum")


def _stall(reason: str) -> Metric:
    """The share of a warp's time between two of its instructions that it waits for `reason`.

    Both cycle counts are an instruction's, so launches that execute more count for more.
    """
    name = f"stalled on {reason.replace('_', ' ')}"
    ncu = f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
    key = f"stall_{reason}_percent"
    return _mean(key, name, "%", ncu, _INSTRUCTIONS, over=_WARP_CYCLES, scale=100)


METRICS = (
    Metric("duration_us", "duration", "us", _TIME, scale=1e-3, decimals=2),
    Metric("global_loads", "global loads", "", "smsp__sass_inst_executed_op_global_ld.sum"),
    Metric("global_stores", "global stores", "", "smsp__sass_inst_executed_op_global_st.sum"),
    Metric("warp_instructions", "warp instructions", "", _INSTRUCTIONS),
    Metric("dram_bytes_read", "DRAM reads", "bytes", "dram__bytes_read.sum"),
    Metric("dram_bytes_written", "DRAM writes", "bytes", "dram__bytes_write.sum"),
    _hits("l1_hit_percent", "L1 hits", "l1tex"),
    _hits("l2_hit_percent", "L2 hits", "lts"),
    _stall("long_scoreboard"),
    _stall("barrier"),
    _stall("short_scoreboard"),
    _stall("wait"),
    _stall("math_pipe_throttle"),
    _stall("lg_throttle"),
    _mean(
        "warp_cycles_per_instruction",
        "warp cycles per instruction",
        "",
        _WARP_CYCLES,
        _INSTRUCTIONS,
    ),
    _mean("achieved_occupancy_percent", "achieved occupancy", "%", _OCCUPANCY),
    Metric(
        "theoretical_occupancy_percent",
        "theoretical occupancy",
        "%",
        "sm__maximum_warps_per_active_cycle_pct",
        how=Combine.LEAST,
        decimals=2,
    ),
    _mean("active_warps", "active warps", "a scheduler", "smsp__warps_active.avg.per_cycle_active"),
    _mean("eligible_warps", "eligible warps", "a scheduler", _ELIGIBLE),
    _mean("issued_warps", "issued warps", "a scheduler", "smsp__issue_active.avg.per_cycle_active"),
    Metric("registers", "registers", "a thread", "launch__registers_per_thread", how=Combine.MOST),
    _mean(
        "uniform_branch_percent",
        "uniform branches",
        "%",
        "smsp__sass_branch_targets_threads_uniform.sum",
        weight="",
        over="smsp__sass_branch_targets.sum",
        scale=100,
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
