"""How the launches of one call make one value."""

from __future__ import annotations

import pytest

from kgen.profile.metrics import METRICS, RENAMED, Metric, ncu_metrics, value_of

BY_KEY = {metric.key: metric for metric in METRICS}
TIME = "gpu__time_duration.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
LATENCY = "smsp__average_warp_latency_per_inst_issued.ratio"
BARRIER = "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"
UNIFORM = "smsp__sass_branch_targets_threads_uniform.sum"
TARGETS = "smsp__sass_branch_targets.sum"


def value(key: str, *launches: dict[str, float]) -> float | None:
    return value_of(BY_KEY[key], launches)


def test_one_launch_keeps_its_values() -> None:
    assert value("duration_us", {TIME: 4512.0}) == pytest.approx(4.512)
    hits = {"l1tex__t_sector_hit_rate.pct": 38.4, "l1tex__t_sectors.sum": 1e6}
    assert value("l1_hit_percent", hits) == pytest.approx(38.4)
    assert value("stall_barrier_percent", {BARRIER: 2.5, LATENCY: 10, INSTRUCTIONS: 9}) == 25
    assert value("uniform_branch_percent", {UNIFORM: 855, TARGETS: 1000}) == 85.5


def test_counts_and_times_add_up() -> None:
    loads = value("global_loads", *({BY_KEY["global_loads"].ncu: n} for n in (10.0, 20.0)))
    assert loads == 30 and isinstance(loads, int)
    assert value("duration_us", {TIME: 1000}, {TIME: 500}) == 1.5


def test_means_are_weighted() -> None:
    hit, sectors = "lts__t_sector_hit_rate.pct", "lts__t_sectors.sum"
    assert value("l2_hit_percent", {hit: 100, sectors: 1}, {hit: 0, sectors: 3}) == 25
    warps = BY_KEY["active_warps"].ncu
    assert value("active_warps", {warps: 8, TIME: 300}, {warps: 4, TIME: 100}) == 7
    many = {BARRIER: 1, LATENCY: 10, INSTRUCTIONS: 100}
    few = {BARRIER: 10, LATENCY: 20, INSTRUCTIONS: 10}
    assert value("stall_barrier_percent", many, few) == pytest.approx(100 * 200 / 1200)
    assert value("warp_cycles_per_instruction", many, few) == pytest.approx(1200 / 110)
    branches = ({UNIFORM: 9, TARGETS: 10}, {UNIFORM: 45, TARGETS: 90})
    assert value("uniform_branch_percent", *branches) == pytest.approx(54)


def test_a_call_is_as_hungry_as_its_hungriest_launch() -> None:
    registers = BY_KEY["registers"].ncu
    assert value("registers", {registers: 30}, {registers: 41}, {registers: 16}) == 41
    occupancy = BY_KEY["theoretical_occupancy_percent"].ncu
    assert value("theoretical_occupancy_percent", {occupancy: 100}, {occupancy: 75}) == 75


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.key)
def test_a_value_with_a_part_missing_is_none(metric: Metric) -> None:
    whole = dict.fromkeys(metric.ncu_names, 1.0)
    assert value_of(metric, [whole, whole]) is not None
    for name in metric.ncu_names:
        partial = {other: 1.0 for other in metric.ncu_names if other != name}
        assert value_of(metric, [whole, partial]) is None


def test_no_share_of_nothing() -> None:
    assert value("uniform_branch_percent", {UNIFORM: 0, TARGETS: 0}) is None
    assert value("global_loads") is None


def test_names_are_unique() -> None:
    assert len(BY_KEY) == len(METRICS) == len({metric.name for metric in METRICS})
    assert len(set(ncu_metrics())) == len(ncu_metrics())
    assert {*RENAMED, *RENAMED.values()} <= set(ncu_metrics())
