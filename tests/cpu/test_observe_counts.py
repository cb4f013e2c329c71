"""What an observed run counts: warp instructions, as a GPU's counters would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from kgen import cpu
from kgen.cpu.observation import Counts
from kgen.execute import find_target, observe, source_for
from kgen.launch import Launch, LaunchPlan
from kgen.sources.source import Source

pytestmark = pytest.mark.slow

MakeSource = Callable[..., Source]

# The V1-V9 report measured these on its GPU: warp-level global loads and stores, 256 threads.
REPORTED = [
    ("v2", 128, 4096, 49_152, 16_384),
    ("v3", 128, 4096, 16_384, 16_384),
    ("v5", 1024, 4096, 262_144, 131_072),
    ("v6", 1024, 4096, 163_840, 131_072),
    ("v6_double", 1024, 4096, 65_536, 32_768),
    ("v7", 1024, 4096, 32_768, 32_768),
    ("v5", 1025, 257, 18_450, 9_225),
    ("v8", 1025, 257, 18_450, 9_225),
]


def counts_of(variant: str, rows: int, cols: int, schedule: str = "in_order") -> Counts:
    (counts,) = observe(find_target(variant), matrix(rows, cols), schedule=schedule).counts
    return counts


def matrix(rows: int, cols: int) -> np.ndarray:
    return np.random.default_rng(cols).uniform(-10, 10, (rows, cols)).astype(np.float32)


@pytest.mark.parametrize(("variant", "rows", "cols", "loads", "stores"), REPORTED)
def test_the_reported_counts(variant: str, rows: int, cols: int, loads: int, stores: int) -> None:
    counts = counts_of(variant, rows, cols)
    assert (counts.global_loads, counts.global_stores) == (loads, stores)


@pytest.mark.parametrize("schedule", cpu.SCHEDULES)
@pytest.mark.parametrize("variant", ["v1", "v5", "v7", "v8", "k1", "v9"])
def test_counts_are_the_same_on_every_schedule(variant: str, schedule: str) -> None:
    assert counts_of(variant, 9, 261, schedule) == counts_of(variant, 9, 261)


def test_reductions_barriers_and_widths() -> None:
    v5, v8, v7 = (counts_of(variant, 8, 4096) for variant in ("v5", "v8", "v7"))
    assert v5.warp_reductions == 8 * 9 and v8.warp_reductions == 8
    # Five rounds in each of eight warps, three over their results, of maximum and sum.
    assert v5.shuffles == 8 * (8 * 5 + 3) * 2 and v8.shuffles == 8 * 5 * 2
    assert v5.barriers == 8 * 2 * 8 and v8.barriers == 0
    assert v5.global_loads_by_width == (0, 0, v5.global_loads, 0, 0)
    assert v7.global_loads_by_width == (0, 0, 0, 0, v7.global_loads)
    assert v7.global_bytes_loaded == v7.global_bytes_stored == 8 * 4096 * 4
    assert v7.global_sectors_loaded == v7.global_sectors_stored == 8 * 4096 // 8


@pytest.mark.parametrize("variant", ["v13", "v13:row_split=cluster", "v14:blocks_per_row=8"])
def test_blocks_of_a_row_load_what_a_block_does(variant: str) -> None:
    """An arrival that nobody waits for yet splits no warp's accesses."""
    counts = counts_of(variant, 2, 8192)
    assert counts.global_loads_by_width[4] == counts.global_stores_by_width[4] == 2 * 8192 // 128


def test_exponentials_of_the_updates() -> None:
    two, one = (counts_of(variant, 1, 256) for variant in ("v4", "v4_opt"))
    assert two.thread_exponentials - one.thread_exponentials == 256
    assert two.exponentials - one.exponentials == 8


def test_every_launch_has_its_counts() -> None:
    maximum, total, write = observe(find_target("t1"), matrix(2, 2048)).counts
    assert [c.kernel for c in (maximum, total, write)] == [
        f"softmax_t1_{phase}" for phase in ("max", "sum", "write")
    ]
    assert maximum.atomics == total.atomics == 4 and write.atomics == 0
    assert maximum.global_stores == total.global_stores == 0
    assert (maximum + total).atomics == 8


def test_one_more_load_in_the_text_is_one_more_in_the_counts() -> None:
    source = source_for(find_target("v2"), 4, 4096)
    old = "fmaxf(thread_max, x_row[c]);"
    assert source.text.count(old) == 1
    twice = "fmaxf(thread_max, fmaxf(x_row[c], x_row[c ^ 1]));"
    more = replace(source, text=source.text.replace(old, twice))
    x = matrix(4, 4096)
    before, after = (observe(target, x).counts[0] for target in (source, more))
    assert after.global_loads - before.global_loads == 4 * 4096 // 32
    assert after.global_stores == before.global_stores


def counts_of_body(make_source: MakeSource, body: str, block: int = 64) -> Counts:
    text = (
        f'extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {{\n{body}\n}}'
    )
    launch = Launch("k", 1, block, 0, ("x", "y", "rows", "cols"))
    x = np.zeros((1, 1024), np.float32)
    (counts,) = cpu.observe(make_source(text, "k"), LaunchPlan(1, 1024, (launch,)), x).counts
    return counts


def test_lanes_that_take_part_are_one_instruction(make_source: MakeSource) -> None:
    counts = counts_of_body(make_source, "if (threadIdx.x % 3 == 0) y[threadIdx.x] = 1.0f;")
    assert counts.global_stores == 2 and counts.global_bytes_stored == 22 * 4


def test_a_value_that_was_just_stored_is_not_loaded(make_source: MakeSource) -> None:
    body = "y[threadIdx.x] = x[threadIdx.x]; y[threadIdx.x + 64] = y[threadIdx.x] + 1.0f;"
    counts = counts_of_body(make_source, body)
    assert (counts.global_loads, counts.global_stores) == (2, 4)


@pytest.mark.parametrize(("stride", "sectors"), [(1, 8), (2, 16), (8, 64), (0, 2)])
def test_sectors(make_source: MakeSource, stride: int, sectors: int) -> None:
    counts = counts_of_body(make_source, f"y[threadIdx.x] = x[threadIdx.x * {stride}];")
    assert counts.global_sectors_loaded == sectors


@pytest.mark.parametrize(("stride", "conflicts"), [(1, 0), (2, 1), (32, 31), (0, 0), (33, 0)])
def test_bank_conflicts(make_source: MakeSource, stride: int, conflicts: int) -> None:
    body = f"""
    __shared__ float values[33 * 32];
    values[threadIdx.x * {stride}] = 1.0f;
    """
    assert counts_of_body(make_source, body, block=32).shared_bank_conflicts == conflicts


def test_vectors_take_turns_without_conflict(make_source: MakeSource) -> None:
    body = """
    __shared__ float4 values[32];
    values[threadIdx.x] = make_float4(1, 2, 3, 4);
    """
    counts = counts_of_body(make_source, body, block=32)
    assert counts.shared_stores_by_width == (0, 0, 0, 0, 1)
    assert counts.shared_bank_conflicts == 0


def test_approximate_exponentials_count(make_source: MakeSource) -> None:
    body = "y[threadIdx.x] = __expf(x[threadIdx.x]) + exp2f(x[1]);"
    counts = counts_of_body(make_source, body)
    assert (counts.exponentials, counts.thread_exponentials) == (4, 128)


def test_clang_is_refused(make_source: MakeSource, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from kgen.errors import MissingTool

    clang = tmp_path / "clang++"
    clang.write_text("#!/bin/sh\necho clang version 16\n")
    clang.chmod(0o755)
    monkeypatch.setenv("CXX", str(clang))
    monkeypatch.setenv("KGEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(MissingTool, match="observed with GCC's instrumentation only"):
        counts_of_body(make_source, "y[0] = 1;")
