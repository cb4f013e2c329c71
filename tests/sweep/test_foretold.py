"""What is foretold of kernels against what was counted, reported and measured of them."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kgen.evidence import inputs
from kgen.execute import observe
from kgen.specs.variants import checked
from kgen.sweep.foretold import counts, foretold_us, registers
from kgen.sweep.likely import MOST
from kgen.sweep.point import Point

HERE = Path(__file__).parent
COUNTED = json.loads((HERE / "h200_cold.json").read_text())
CLUSTERS = json.loads((HERE / "h200_clusters.json").read_text())["rows"]


@pytest.mark.parametrize("given", COUNTED, ids=lambda it: f"{it['version']}-{it['cols']}")
def test_accesses_are_those_that_were_counted(given: dict[str, Any]) -> None:
    spec = checked(given["version"]).resolve(given["cols"])
    found = counts(spec, given["rows"], given["cols"])
    for name in ("global_loads", "global_stores", "global_sectors", "barriers", "shared_accesses"):
        assert given[name] * 0.95 <= found[name] <= given[name] * 1.65, name
    assert given["exponentials"] * 0.8 <= found["exponentials"] <= given["exponentials"] * 1.4


def test_registers_are_about_what_the_compiler_takes() -> None:
    """But for loops that it unrolls twice, and rows whose edges it treats apart."""
    off = [
        abs(registers(checked(variant).resolve(cols)) - taken)
        for _, _, cols, variant, _, taken in CLUSTERS
        if taken
    ]
    assert sum(it <= 16 for it in off) > 0.85 * len(off)


def test_a_bound_on_registers_is_kept() -> None:
    free, bound = (registers(checked(f"v13:items=19,{axes}")) for axes in ("vec=4", "min_blocks=5"))
    assert (free, bound) == (96, 96)
    assert registers(checked("v13:items=5,min_blocks=12")) == 40


@pytest.mark.parametrize(("number", "taken"), [(1, 29), (2, 40), (4, 74)])
def test_rows_at_once_take_registers_each(number: int, taken: int) -> None:
    """As ptxas reports of rows of 128."""
    axes = f"merge=separate,update=three_pass,cache=exps_registers,exp=exp2,rows_at_once={number}"
    assert abs(registers(checked(f"v10:{axes},items=2")) - taken) <= 8


@pytest.mark.parametrize(
    ("axes", "sectors", "loads", "stores"),
    [
        ("", 8, 1, 1),
        ("dtype=bfloat16", 4, 0.5, 0.5),
        ("dtype=bfloat16,vec=4", 4, 1, 1),
        ("dtype=bfloat16,out_dtype=float32", 6, 1, 1),
        ("dtype=bfloat16,out_dtype=float32,vec=8", 6, 0.5, 1),  # which is stored in two pieces
        ("out_dtype=float16,vec=8", 6, 1, 0.5),
        ("dtype=float64", 16, 2, 2),
    ],
)
def test_sectors_and_accesses_are_those_of_the_types(
    axes: str, sectors: float, loads: float, stores: float
) -> None:
    """Sectors in bytes an element, accesses in those of four elements a lane."""
    spec = checked(f"v11:{axes}").resolve(4096)
    found = counts(spec, 24, 4096)
    elements = 24 * 4096
    assert found["global_sectors"] == elements * sectors / 32
    assert found["global_loads"] == elements / 128 * loads
    assert found["global_stores"] == elements / 128 * stores


def test_a_double_takes_two_registers() -> None:
    single, double = (
        registers(checked(f"v11:dtype={it},vec=2,items=16")) for it in ("float32", "float64")
    )
    assert (single, double) == (48, 88)


def test_narrow_types_are_faster_by_about_the_bytes_that_they_move() -> None:
    full, mixed, half = (
        us(f"v11:{axes}", 16384, 8192)
        for axes in ("", "dtype=bfloat16,out_dtype=float32", "dtype=bfloat16")
    )
    assert full / mixed == pytest.approx(8 / 6, rel=0.12)
    assert full / half == pytest.approx(2, rel=0.12)


def us(variant: str, rows: int, cols: int) -> float:
    return foretold_us(Point(checked(variant), rows, cols))


def test_scalar_accesses_of_odd_rows_are_slower_than_shifted_vectors() -> None:
    shifted = us("v13:unaligned=shift", 4096, 50257)
    assert us("v13:unaligned=scalar_groups", 4096, 50257) > 1.1 * shifted


def test_blocks_that_meet_in_global_memory_pay_more_than_clusters() -> None:
    async_, barrier, memory = (
        us(f"v13:row_split={split},blocks_per_row=8", 1, 32000)
        for split in ("cluster_async", "cluster", "co_resident")
    )
    assert async_ < barrier < memory


def test_exponentials_that_are_computed_twice_cost() -> None:
    twice, once = (
        us(f"v11:cache={cache}", 64, 8192) for cache in ("inputs_registers", "exps_registers")
    )
    assert twice > once


def test_a_row_on_its_way_takes_accesses_to_shared_memory_or_registers() -> None:
    point = "v13:row_loop=grid_stride,grid=16,next_row={}"
    specs = [checked(point.format(it)).resolve(8192) for it in ("none", "async", "bulk")]
    found = [counts(spec, 24, 8192)["shared_accesses"] for spec in specs]
    vectors = 24 * 8192 / 4 / 32
    assert [it - found[0] for it in found] == [0, vectors, 2 * vectors]
    kept, twice = (
        registers(checked(f"v13:items=16,next_row={it}")) for it in ("async", "registers")
    )
    assert twice > 1.8 * kept


def test_clusters_that_do_not_fit_at_once_wait() -> None:
    """Of one block a multiprocessor there are 15 clusters of 8 at once: the 16th waits for another."""
    few, fit, more = (us("v13:threads=1024,items=11", rows, 360_000) for rows in (14, 15, 16))
    assert more - fit > 1.2 * (fit - few)


@pytest.mark.parametrize("cache", ["exps_shared_async", "exps_shared_bulk", "inputs_shared"])
def test_accesses_of_rows_in_shared_memory_are_those_that_are_counted(cache: str) -> None:
    variant = f"v11:cache={cache},unaligned=scalar_row,threads=128"
    [seen] = observe(checked(variant), inputs.make("uniform", 4, 4096)).counts
    found = counts(checked(variant), 4, 4096)
    assert found["shared_accesses"] == pytest.approx(
        seen.shared_loads + seen.shared_stores, rel=0.1
    )
    for name in ("global_loads", "global_stores", "barriers", "exponentials"):
        assert found[name] == pytest.approx(getattr(seen, name), rel=0.1), name


def test_a_row_that_comes_at_once_waits_less_than_one_read_by_a_loop() -> None:
    asynchronous, loop = (
        us(f"v13:cache={cache},threads=512", 1024, 131072)
        for cache in ("exps_shared_async", "exps_shared")
    )
    assert asynchronous < loop


@pytest.fixture(scope="module")
def model_order() -> ModuleType:
    sys.path.insert(0, str(HERE.parents[1] / "bench"))
    try:
        return importlib.import_module("model_order")
    finally:
        sys.path.pop(0)


def test_the_fastest_kernels_have_early_places(model_order: ModuleType) -> None:
    """As `bench/model_order.py` prints: a default sweep tries the fastest of every table."""
    times = model_order.read_times()
    found = [model_order.agreement(*shape, it) for shape, it in times.items()]
    assert max(it.place for it in found) < MOST
    assert sum(it.place <= 20 for it in found) >= 0.85 * len(found)
    pairs, right = (sum(getattr(it, name) for it in found) for name in ("pairs", "right"))
    assert right / pairs > 0.6
