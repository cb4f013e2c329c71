"""The cost model against times of a GPU, and against what must hold on any."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import spearmanr

from kgen.execute import find_target, source_for
from kgen.launch import plan
from kgen.specs.rules import problems_for
from kgen.specs.rules.shapes import most_rows
from kgen.specs.versions import VERSIONS
from kgen.store.measurement import Kind
from kgen.sweep.model import COUNTS, RANKING, model_us
from kgen.sweep.model_gpu import REFERENCE_GPU
from kgen.toolchain import KernelResources
from tests.sweep.made import made

# Medians of an H200 with a cold L2, with the counts and registers of the same kernels.
TIMED = json.loads((Path(__file__).parent / "h200_cold.json").read_text())
SHAPES = [(1024, 4096), (1025, 257), (256, 65536)]


def given(version, rows, cols):
    return next(
        it for it in TIMED if (it["version"], it["rows"], it["cols"]) == (version, rows, cols)
    )


def arguments(variant, rows, cols, **changes):
    """The row, the plan and the resources of a variant, with the version's counts, changed."""
    facts = given(variant.partition(":")[0], rows, cols) | changes
    source = source_for(find_target(variant), rows, cols)
    counts = {name: facts[name] for name in COUNTS}
    row = made(variant, rows=rows, cols=cols, device="cpu", **counts)
    row = replace(row, spec=json.dumps(source.spec.axes))
    kernel = KernelResources("k", facts["registers"], 0, 0, 0, facts["static_shared_bytes"])
    return row, plan(source, rows, cols), [kernel]


def modelled(variant, rows, cols, gpu=REFERENCE_GPU, **changes):
    return model_us(*arguments(variant, rows, cols, **changes), gpu)


def both(timed):
    times = [it["us"] for it in timed]
    return times, [modelled(it["version"], it["rows"], it["cols"]) for it in timed]


@pytest.mark.parametrize("shape", SHAPES)
def test_it_ranks_as_well_as_it_says(shape):
    times, models = both([it for it in TIMED if (it["rows"], it["cols"]) == shape])
    assert spearmanr(times, models).statistic == pytest.approx(RANKING.by_shape[shape], abs=0.005)
    assert len(TIMED) == RANKING.medians and len(RANKING.by_shape) == len(SHAPES)


def test_it_ranks_across_shapes_and_is_not_far_off():
    times, models = both(TIMED)
    assert spearmanr(times, models).statistic > 0.95
    assert all(0.6 < model / time < 1.6 for time, model in zip(times, models, strict=True))


@pytest.mark.parametrize("name", COUNTS)
def test_more_of_anything_never_costs_less(name):
    much = 100 * given("v5", 1024, 4096)[name]
    assert modelled("v5", 1024, 4096, **{name: much}) >= modelled("v5", 1024, 4096)


def test_dram_bounds_what_moves():
    moved = 4 * given("v5", 256, 65536)["global_sectors"]
    at_least = 32 * moved / REFERENCE_GPU.dram_gb_per_s / 1e3
    assert at_least < modelled("v5", 256, 65536, global_sectors=moved) < 1.5 * at_least


def test_registers_that_leave_room_for_fewer_blocks_cost_waves():
    fits, spread = (modelled("v5", 1024, 4096, registers=number) for number in (32, 255))
    assert spread > 1.2 * fits
    row, launches, _ = arguments("v5", 1024, 4096)
    assert model_us(row, launches, None) == fits


def test_few_warps_cannot_load_fast():
    """The same work by a warp a row instead of a block a row has an eighth of the bytes in flight."""
    assert modelled("v8", 256, 65536) > 3 * modelled("v5", 256, 65536)


def test_a_faster_gpu_is_faster_and_every_launch_costs():
    usual = modelled("v5", 1024, 4096)
    assert modelled("v5", 1024, 4096, replace(REFERENCE_GPU, mhz=4000)) < usual
    assert modelled("v5", 1024, 4096, replace(REFERENCE_GPU, dram_gb_per_s=8000)) < usual
    later = modelled("v5", 1024, 4096, replace(REFERENCE_GPU, launch_us=11.5))
    assert later == pytest.approx(usual + 10)


@pytest.mark.parametrize("rate", ["issue_slots", "exponential_lanes", "shared_lanes"])
def test_every_rate_can_be_the_slowest(rate):
    slow = replace(REFERENCE_GPU, **{rate: 0.1})
    assert modelled("v5", 1024, 4096, slow) > 2 * modelled("v5", 1024, 4096)


@pytest.mark.parametrize(
    ("version", "shape", "turns"),
    [("v5", SHAPES[0], 4), ("v3", SHAPES[0], 1), ("v8", SHAPES[0], 32), ("v9", SHAPES[1], 6)],
)
def test_a_warp_waits_for_dram_once_for_loads_in_flight_and_for_each_row(version, shape, turns):
    """Blocks that walk rows wait once more, for the last row that nothing else hides."""
    far = replace(REFERENCE_GPU, dram_cycles=REFERENCE_GPU.dram_cycles + 1000)
    waited_us = modelled(version, *shape, far) - modelled(version, *shape)
    assert waited_us == pytest.approx(turns * 1000 / REFERENCE_GPU.mhz)


def test_launches_add_up():
    row, launches, kernels = arguments("v5", 1024, 4096)
    thrice = replace(launches, launches=launches.launches * 3)
    once = model_us(row, launches, kernels)
    assert once < model_us(row, thrice, kernels * 3) < 1.5 * once


@pytest.mark.parametrize("version", [name for name in VERSIONS if name != "cpu"])
def test_every_kernel_can_be_modelled(version):
    counts = {name: given("v5", 1024, 4096)[name] for name in COUNTS}
    row = made(version, device="cpu", **counts)
    spec = VERSIONS[version].spec
    rows = min(1024, most_rows(spec))
    cols = 4096 if not problems_for(spec, rows, 4096) else 256
    row = replace(row, rows=rows, cols=cols)
    launches = plan(source_for(find_target(version), rows, cols), rows, cols)
    least = 2 * row.rows * row.cols * 4 / REFERENCE_GPU.dram_gb_per_s / 1e3
    assert model_us(row, launches, None) > least + len(launches.launches) * REFERENCE_GPU.launch_us


def test_what_was_not_counted_cannot_be_modelled():
    row, launches, kernels = arguments("v5", 1024, 4096)
    with pytest.raises(ValueError, match="v5 was not counted"):
        model_us(replace(row, shuffles=None), launches, kernels)
    with pytest.raises(ValueError, match="copy was not counted"):
        model_us(made("copy", kind=Kind.COPY), launches, kernels)
