"""Copies that a thread starts and waits for later: pipelines, bulk loads and bulk stores."""

from __future__ import annotations

import numpy as np
import pytest

from kgen import cpu
from kgen.errors import KernelFault

from .groups import RunKernel, fault_of, found, run_grid

pytestmark = pytest.mark.slow

every_schedule = pytest.mark.parametrize("schedule", cpu.SCHEDULES)
T = np.arange(64, dtype=np.float32)

# Every thread brings an element of a stage in; the others read it.
PIPELINE = """
    __shared__ float stage[64];
    __pipeline_memcpy_async(&stage[t], &x[t], 4);
    __pipeline_commit();
    WAIT
    __syncthreads();
    y[t] = stage[63 - t];
"""
# The same in two stages, one of which is under way while the other is read.
STAGES = """
    __shared__ float stage[2][32];
    for (int i = 0; i < 2; ++i) {
        if (t < 32) __pipeline_memcpy_async(&stage[i][t], &x[32 * i + t], 4);
        __pipeline_commit();
    }
    __pipeline_wait_prior(PENDING);
    __syncthreads();
    if (t < 32) y[t] = stage[0][31 - t];
    __pipeline_wait_prior(0);
    __syncthreads();
    if (t >= 32) y[t] = stage[1][63 - t];
"""


@every_schedule
def test_a_pipeline_brings_what_is_waited_for(run_kernel: RunKernel, schedule: str) -> None:
    body = PIPELINE.replace("WAIT", "__pipeline_wait_prior(0);")
    np.testing.assert_array_equal(run_grid(run_kernel, body, schedule=schedule)[0], 63 - T)
    assert found(run_grid, run_kernel, body, schedule=schedule) == []


@every_schedule
@pytest.mark.parametrize("wait", ["", "__pipeline_wait_prior(1);"])
def test_a_pipeline_that_is_not_waited_for(run_kernel: RunKernel, wait: str, schedule: str) -> None:
    body = PIPELINE.replace("WAIT", wait)
    assert np.isnan(run_grid(run_kernel, body, schedule=schedule)).all()
    (race,) = found(run_grid, run_kernel, body, schedule=schedule)
    assert "race on element" in race and "shared array k::stage" in race


@every_schedule
def test_stages_of_a_pipeline(run_kernel: RunKernel, schedule: str) -> None:
    right, wrong = (STAGES.replace("PENDING", pending) for pending in "12")
    expected = np.concatenate([T[:32][::-1], T[32:][::-1]])
    np.testing.assert_array_equal(run_grid(run_kernel, right, schedule=schedule)[0], expected)
    assert found(run_grid, run_kernel, right, schedule=schedule) == []
    assert found(run_grid, run_kernel, wrong, schedule=schedule)


@every_schedule
def test_a_stage_that_is_filled_again_before_it_was_waited_for(
    run_kernel: RunKernel, schedule: str
) -> None:
    again = "__pipeline_memcpy_async(&stage[t], &x[t], 4); __pipeline_commit(); "
    body = PIPELINE.replace("WAIT", f"{again} __pipeline_wait_prior(0);")
    assert "race" in found(run_grid, run_kernel, body, schedule=schedule)[0]


# A thread brings a stage in at once, which an mbarrier tells; all wait for it.
LOAD = """
    __shared__ alignas(16) float stage[64];
    __shared__ uint64_t bar;
    BEFORE
    if (t == 0) ptx::mbarrier_init(&bar, 1);
    FENCE
    __syncthreads();
    if (t == 0) {
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stage, x, 256, &bar);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar,
                                       BYTES);
    }
    WAIT  // here
    y[t] = stage[63 - t];
"""
WAIT = "while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}"
FENCE = "ptx::fence_proxy_async(ptx::space_shared);"


def load(size: int = 256, wait: str = WAIT, fence: str = FENCE, before: str = "") -> str:
    changed = LOAD.replace("BYTES", str(size)).replace("WAIT", wait)
    return changed.replace("FENCE", fence).replace("BEFORE", before)


@every_schedule
def test_a_bulk_load_brings_what_is_waited_for(run_kernel: RunKernel, schedule: str) -> None:
    body = load()
    np.testing.assert_array_equal(run_grid(run_kernel, body, schedule=schedule)[0], 63 - T)
    assert found(run_grid, run_kernel, body, schedule=schedule) == []


@every_schedule
def test_only_who_waits_sees_a_bulk_load(run_kernel: RunKernel, schedule: str) -> None:
    body = load(wait=f"if (t == 0) {WAIT}")
    assert found(run_grid, run_kernel, body, schedule=schedule)
    body = body.replace("// here", "\n    __syncthreads();")
    assert found(run_grid, run_kernel, body, schedule=schedule) == []


@every_schedule
def test_a_bulk_load_of_fewer_bytes_than_expected(run_kernel: RunKernel, schedule: str) -> None:
    body = load(272)
    message = fault_of(run_grid, run_kernel, body, schedule=schedule)
    assert "1 of 1 arrivals and 256 of 272 bytes have come" in message


FILLED = "stage[t] = 0; __syncthreads();"


@every_schedule
@pytest.mark.parametrize(
    ("body", "unfenced"),
    [
        (load(fence=""), "k::bar"),
        (load(fence=FENCE + FILLED), "k::stage"),
        (load(before=FILLED, fence="if (t == 0) " + FENCE), ""),
    ],
)
def test_a_bulk_load_sees_what_a_proxy_fence_lets_it_see(
    run_kernel: RunKernel, body: str, unfenced: str, schedule: str
) -> None:
    faults = found(run_grid, run_kernel, body, schedule=schedule)
    assert len(faults) == bool(unfenced)
    if unfenced:
        said = f"a bulk copy writes element 0 of shared array {unfenced}, with no fence_proxy"
        assert said in faults[0]


# All fill a stage, a thread sends it to y, and all fill it again.
STORE = """
    __shared__ alignas(16) float stage[64];
    stage[t] = 2 * x[t];
    FENCE
    __syncthreads();
    if (t == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, y, stage, 256);  // here
        ptx::cp_async_bulk_commit_group();
        WAIT
    }
    __syncthreads();
    AGAIN
    if (t == 0) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
"""
READ = "ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});"
AGAIN = "stage[t] = 0;"


def store(fence: str = FENCE, wait: str = READ, again: str = AGAIN) -> str:
    return STORE.replace("FENCE", fence).replace("WAIT", wait).replace("AGAIN", again)


@every_schedule
@pytest.mark.parametrize("wait", [READ, "ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});"])
def test_a_bulk_store_writes(run_kernel: RunKernel, wait: str, schedule: str) -> None:
    body = store(wait=wait)
    np.testing.assert_array_equal(run_grid(run_kernel, body, schedule=schedule)[0], 2 * T)
    assert found(run_grid, run_kernel, body, schedule=schedule) == []


@every_schedule
def test_a_stage_that_is_filled_before_its_bulk_store_has_read(
    run_kernel: RunKernel, schedule: str
) -> None:
    body = store(wait="")
    assert not run_grid(run_kernel, body, schedule=schedule).any()
    (race,) = found(run_grid, run_kernel, body, schedule=schedule)
    assert "race on element" in race and "k::stage" in race


@every_schedule
def test_a_bulk_store_without_a_proxy_fence(run_kernel: RunKernel, schedule: str) -> None:
    (fault,) = found(run_grid, run_kernel, store(fence=""), schedule=schedule)
    assert "a bulk copy reads element 0 of shared array k::stage, with no fence_proxy" in fault


def test_the_storing_thread_may_fence_for_all(run_kernel: RunKernel) -> None:
    copy = "ptx::cp_async_bulk(ptx::space_global"
    body = store(fence="").replace(copy, f"{FENCE} {copy}")
    assert found(run_grid, run_kernel, body) == []


def test_a_bulk_store_that_outlives_its_thread(run_kernel: RunKernel) -> None:
    body = store(wait="", again="if (t == 0) return;")
    message = fault_of(run_grid, run_kernel, body)
    assert message.startswith("0, thread 0: returns while its bulk store may still read")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("__pipeline_memcpy_async(&cells[0], &x[0], 12);", "copies 4, 8 or 16 bytes, not 12"),
        ("__pipeline_memcpy_async(&cells[1], &x[1], 8);", "is not a multiple of 8 bytes"),
        ("__pipeline_memcpy_async(y, x, 4);", "copies to the block's shared memory only"),
        (
            "ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, y, cells, 24);",
            "a bulk copy of 24 bytes: it copies a multiple of 16",
        ),
        (
            "ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, y + 1, cells, 16);",
            "misaligned access: byte 4 of y is not a multiple of 16 bytes",
        ),
        (
            "ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, y, x, 16);",
            "a bulk store reads the block's own shared memory only",
        ),
    ],
)
def test_misuse_is_named(run_kernel: RunKernel, body: str, why: str) -> None:
    body = f"__shared__ alignas(16) float cells[64]; if (t == 7) {{ {body} }}  // here"
    message = fault_of(run_grid, run_kernel, body)
    assert message.startswith("0, thread 7: ") and why in message


def test_copies_are_counted_as_sixteen_bytes_a_lane(run_kernel: RunKernel) -> None:
    body = load()
    (counts,) = run_grid(run_kernel, body, execute=cpu.observe).counts
    assert counts.global_loads_by_width == (0, 0, 0, 0, 1)
    assert (counts.global_bytes_loaded, counts.global_sectors_loaded) == (256, 8)
    assert counts.shared_stores_by_width[4] == 1
    (counts,) = run_grid(run_kernel, store(), execute=cpu.observe).counts
    assert (counts.global_stores, counts.global_bytes_stored) == (1, 256)


# As a kernel that walks tiles does it: a thread fills stages as soon as they are empty again, and
# each goes back, changed, by a bulk store.
TILES = """
    __shared__ alignas(16) float stages[2][16];
    __shared__ uint64_t full[2], empty[2];
    if (t == 0) {
        for (int i = 0; i < 2; ++i) {
            ptx::mbarrier_init(&full[i], 1);
            ptx::mbarrier_init(&empty[i], 32);
        }
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    if (t == 32) {
        for (int tile = 0; tile < 4; ++tile) {
            const int stage = tile % 2;
            EMPTY
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared,
                                           &full[stage], 64);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stages[stage], x + 16 * tile,
                               64, &full[stage]);
        }
    } else if (t < 32) {
        for (int tile = 0; tile < 4; ++tile) {
            const int stage = tile % 2;
            while (!ptx::mbarrier_try_wait_parity(&full[stage], tile / 2)) {}
            if (t < 16) y[16 * tile + t] = stages[stage][15 - t];
            ptx::mbarrier_arrive(&empty[stage]);
        }
    }
"""
EMPTY = "while (tile > 1 && !ptx::mbarrier_try_wait_parity(&empty[stage], (tile / 2 - 1) % 2)) {}"


@every_schedule
def test_stages_that_are_full_and_empty_in_turn(run_kernel: RunKernel, schedule: str) -> None:
    right, wrong = TILES.replace("EMPTY", EMPTY), TILES.replace("EMPTY", "")
    expected = [16 * tile + 15 - t for tile in range(4) for t in range(16)]
    assert run_grid(run_kernel, right, schedule=schedule)[0].tolist() == expected
    assert found(run_grid, run_kernel, right, schedule=schedule) == []
    # The filling thread is two phases ahead before anybody waits for the first one.
    with pytest.raises(KernelFault, match="waits for phase 2 of the mbarrier"):
        run_grid(run_kernel, wrong, schedule=schedule)
