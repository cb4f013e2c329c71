"""Clusters: distributed shared memory, their barrier, mbarriers and messages."""

from __future__ import annotations

import numpy as np
import pytest

from kgen import cpu
from kgen.errors import KernelFault

from .groups import RunKernel, fault_of, found, run_cluster, run_grid

pytestmark = pytest.mark.slow

every_schedule = pytest.mark.parametrize("schedule", cpu.SCHEDULES)
T = np.arange(64, dtype=np.float32)

# Every block adds up what all blocks of the cluster have at a thread's place.
SUM = """
    __shared__ float values[64];
    values[t] = x[t] + rank;
    FIRST
    float sum = 0;
    for (int r = 0; r < cluster.num_blocks(); ++r) sum += cluster.map_shared_rank(values, r)[t];
    LAST
    if (blockIdx.x == 5) y[t] = sum;
"""
SYNC = "cluster.sync();"
SYNC_BLOCK = "__syncthreads();"


def summed(first: str = SYNC, last: str = SYNC) -> str:
    return SUM.replace("FIRST", first).replace("LAST", last)


@every_schedule
def test_blocks_read_each_others_shared_memory(run_kernel: RunKernel, schedule: str) -> None:
    y = run_cluster(run_kernel, summed(), grid=12, schedule=schedule)
    np.testing.assert_array_equal(y[0], 4 * T + 6)


@every_schedule
@pytest.mark.parametrize(
    "first",
    [
        SYNC,
        "ptx::barrier_cluster_arrive(ptx::sem_release); "
        "ptx::barrier_cluster_wait(ptx::sem_acquire);",
        "auto token = cluster.barrier_arrive(); cluster.barrier_wait(std::move(token));",
    ],
)
def test_barriers_of_the_cluster_order_its_threads(
    run_kernel: RunKernel, first: str, schedule: str
) -> None:
    assert found(run_cluster, run_kernel, summed(first), grid=8, schedule=schedule) == []


@every_schedule
def test_a_relaxed_arrival_orders_nothing(run_kernel: RunKernel, schedule: str) -> None:
    first = "ptx::barrier_cluster_arrive(ptx::sem_relaxed); ptx::barrier_cluster_wait();"
    (race,) = found(run_cluster, run_kernel, summed(first), grid=8, schedule=schedule)
    assert (
        "race on element" in race and "of shared array k::values" in race and " of block " in race
    )


@every_schedule
def test_a_missing_first_barrier_is_found(run_kernel: RunKernel, schedule: str) -> None:
    faults = found(run_cluster, run_kernel, summed("__syncthreads();"), schedule=schedule)
    assert any("race" in fault or "nobody has written" in fault for fault in faults)


def test_a_block_that_leaves_too_early_is_named(run_kernel: RunKernel) -> None:
    body = summed(last="")
    with pytest.raises(KernelFault, match="maps the shared memory of block 3, which has returned"):
        run_cluster(run_kernel, body)


def test_an_access_through_an_old_address_is_named(run_kernel: RunKernel) -> None:
    body = """
    __shared__ float values[64];
    values[t] = x[t];
    const float* other = cluster.map_shared_rank(values, 0);
    cluster.sync();
    if (rank == 0) return;
    y[t] = other[t];  // here
    """
    options = {"execute": cpu.observe}
    message = fault_of(run_cluster, run_kernel, body, **options)
    assert message == "1, thread 0: accesses the shared memory of block 0, which has returned"


def test_dynamic_shared_memory_is_mapped(run_kernel: RunKernel) -> None:
    body = """
    extern __shared__ float cells[];
    cells[t] = x[t] + rank;
    cluster.sync();
    if (rank == 0) y[t] = cluster.map_shared_rank(cells, 2)[63 - t];
    cluster.sync();
    """
    y = run_cluster(run_kernel, body, shared_bytes=256)
    np.testing.assert_array_equal(y[0], 63 - T + 2)


# Each block sends a value to every block, which waits for all of them.
EXCHANGE = """
    __shared__ float values[4];
    __shared__ uint64_t bar;
    if (t == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared,
                                       &bar, BYTES);
    }
    OPEN
    if (t < 4) {
        ptx::st_async(cluster.map_shared_rank(&values[rank], t), x[t] + rank,
                      cluster.map_shared_rank(&bar, t));
    }
    WAIT  // here
    if (blockIdx.x == 1) y[t] = values[t % 4];
    cluster.sync();
"""
OPEN = "ptx::barrier_cluster_arrive(ptx::sem_release); ptx::barrier_cluster_wait(ptx::sem_acquire);"
WAIT = (
    "while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &bar, PARITY)) {}"
)


def exchange(bytes_: int = 16, opening: str = OPEN, wait: str = WAIT, parity: int = 0) -> str:
    text = EXCHANGE.replace("BYTES", str(bytes_)).replace("OPEN", opening).replace("WAIT", wait)
    return text.replace("PARITY", str(parity))


@every_schedule
def test_messages_come_when_waited_for(run_kernel: RunKernel, schedule: str) -> None:
    y = run_cluster(run_kernel, exchange(), schedule=schedule)
    np.testing.assert_array_equal(y[0], 1 + T % 4)
    assert found(run_cluster, run_kernel, exchange(), grid=8, schedule=schedule) == []


@every_schedule
def test_too_many_expected_bytes_never_come(run_kernel: RunKernel, schedule: str) -> None:
    message = fault_of(run_cluster, run_kernel, exchange(20), schedule=schedule)
    assert (
        "thread 0: deadlock, no thread can go on: it waits for phase 0 of the mbarrier " in message
    )
    assert "1 of 1 arrivals and 16 of 20 bytes have come" in message


@every_schedule
def test_too_few_expected_bytes_end_the_phase_early(run_kernel: RunKernel, schedule: str) -> None:
    with pytest.raises(KernelFault, match="bytes for its shared memory, from thread"):
        run_cluster(run_kernel, exchange(12), schedule=schedule)


@every_schedule
def test_a_wrong_parity_finds_what_was_there_before(run_kernel: RunKernel, schedule: str) -> None:
    body = exchange(parity=1) + WAIT.replace("PARITY", "0")
    assert np.isnan(run_cluster(run_kernel, body, schedule=schedule)).any()
    assert any("race" in each for each in found(run_cluster, run_kernel, body, schedule=schedule))


def test_what_nobody_waits_for_may_come_too_late(run_kernel: RunKernel) -> None:
    with pytest.raises(KernelFault, match="may be on their way: nobody waited for them"):
        run_cluster(run_kernel, exchange(wait=""))


@every_schedule
def test_an_mbarrier_must_be_seen_before_it_is_used(run_kernel: RunKernel, schedule: str) -> None:
    opening = "ptx::barrier_cluster_arrive(ptx::sem_relaxed); ptx::barrier_cluster_wait();"
    body = exchange(opening=opening)
    assert found(run_cluster, run_kernel, body, schedule=schedule) == []
    bare = body.replace("ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);", "")
    races = found(run_cluster, run_kernel, bare, schedule=schedule)
    assert any("bar of block" in race for race in races)
    with pytest.raises(KernelFault, match="an mbarrier that nobody has initialised"):
        run_cluster(run_kernel, exchange(opening=""), schedule="in_order")


def test_a_message_to_a_block_that_has_returned(run_kernel: RunKernel) -> None:
    body = """
    __shared__ float value;
    __shared__ uint64_t bar;
    float* other = cluster.map_shared_rank(&value, 0);
    uint64_t* other_bar = cluster.map_shared_rank(&bar, 0);
    if (t == 0) ptx::mbarrier_init(&bar, 1);
    cluster.sync();
    if (rank == 0) return;
    cluster.sync();
    if (t == 0) ptx::st_async(other, 1.0f, other_bar);  // here
    """
    assert "sends to block 0, which has returned" in fault_of(run_cluster, run_kernel, body)


def test_a_message_tells_the_block_that_gets_it(run_kernel: RunKernel) -> None:
    body = """
    __shared__ float value;
    __shared__ uint64_t bar;
    if (t == 0) ptx::mbarrier_init(&bar, 1);
    cluster.sync();
    if (rank == 0 && t == 0) ptx::st_async(cluster.map_shared_rank(&value, 1), 1.0f, &bar);  // here
    """
    message = fault_of(run_cluster, run_kernel, body)
    assert message == "0, thread 0: a message to block 1 that tells an mbarrier of block 0"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("ptx::mbarrier_init(&bar, 1); ptx::mbarrier_init(&bar, 1);", "in use since line"),
        ("ptx::mbarrier_init(&bar, 0);", "an mbarrier of 0 arrivals"),
        ("ptx::mbarrier_arrive(&bar);", "arrives at an mbarrier that nobody has initialised"),
        ("ptx::mbarrier_try_wait_parity(&bar, 0);", "waits on an mbarrier that nobody has init"),
        ("ptx::mbarrier_init(&bar, 1); ptx::mbarrier_try_wait_parity(&bar, 2);", "parity 0 or 1"),
        ("ptx::mbarrier_init(&bar, 1); bar = 0; ptx::mbarrier_arrive(&bar);", "was written over"),
        (
            "ptx::mbarrier_init(&bar, 1); ptx::mbarrier_arrive_expect_tx(ptx::sem_release, "
            "ptx::scope_cta, ptx::space_shared, &bar, 8); ptx::mbarrier_arrive(&bar);",
            "has all of its 1 arrivals",
        ),
        (
            "ptx::mbarrier_init(&bar, 2); ptx::mbarrier_arrive(&bar); "
            "ptx::mbarrier_try_wait_parity(&bar, 0);",
            "1 of 2 arrivals and 0 of 0 bytes have come",
        ),
        ("cluster.barrier_arrive(); cluster.barrier_arrive();", "twice without waiting"),
        ("cluster.barrier_wait();", "without having arrived"),
        ("cluster.map_shared_rank(&bar, 4);", "names block 4 of a cluster of 4"),
        ("int own; cluster.map_shared_rank(&own, 1);", "outside the block's own shared memory"),
    ],
)
def test_misuse_is_named(run_kernel: RunKernel, body: str, why: str) -> None:
    body = f"__shared__ uint64_t bar; if (rank == 0 && t == 7) {{ {body} }}  // here"
    message = fault_of(run_cluster, run_kernel, body)
    assert message.startswith("0, thread 7: ") and why in message


@every_schedule
def test_a_barrier_that_a_thread_forgets(run_kernel: RunKernel, schedule: str) -> None:
    body = """
    __shared__ uint64_t bar;
    if (t == 0) ptx::mbarrier_init(&bar, 1);
    __syncthreads();
    if (rank == 2) while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}  // here
    cluster.sync();
    """
    message = fault_of(run_cluster, run_kernel, body, schedule=schedule)
    assert (
        message.startswith("2, thread 0: deadlock") and "waits at the cluster's barrier" in message
    )


def test_threads_that_returned_count_as_arrived(run_kernel: RunKernel) -> None:
    body = "if (t > 31) return; cluster.sync(); if (rank == 0) y[t] = 1;"
    assert run_cluster(run_kernel, body)[0, :32].tolist() == [1] * 32


def test_a_grid_of_whole_clusters_only(run_kernel: RunKernel) -> None:
    with pytest.raises(KernelFault, match="6 blocks, which is no multiple of its clusters of 4"):
        run_cluster(run_kernel, summed(), grid=6)


def test_remote_accesses_and_messages_are_counted(run_kernel: RunKernel) -> None:
    (counts,) = run_cluster(run_kernel, summed(), execute=cpu.observe).counts
    assert (counts.shared_loads, counts.shared_stores) == (2 * 4 * 4, 2 * 4)
    assert counts.barriers == 2 * 2 * 4
    (counts,) = run_cluster(run_kernel, exchange(), execute=cpu.observe).counts
    assert (counts.shared_stores, counts.shared_bytes_stored) == (4, 4 * 4 * 4)


def test_without_a_cluster_a_block_is_its_own(run_kernel: RunKernel) -> None:
    body = "auto own = cg::this_cluster(); own.sync(); y[t] = own.num_blocks() + own.block_rank();"
    assert run_grid(run_kernel, body)[0].tolist() == [1] * 64


# As a kernel that walks rows does it: two sets of values and mbarriers, which take turns. A block
# sends for a row only after it has read what the row before the last one left there.
ROWS = """
    __shared__ float values[2][4];
    __shared__ uint64_t bars[2];
    if (t == 0) {
        for (int i = 0; i < 2; ++i) ptx::mbarrier_init(&bars[i], 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    cluster.sync();
    float sum = 0;
    for (int row = 0; row < 6; ++row) {
        const int turn = TURN;
        if (t == 0) {
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared,
                                           &bars[turn], 16);
        }
        BETWEEN
        if (t < 4) {
            ptx::st_async(cluster.map_shared_rank(&values[turn][rank], t), x[row] + rank,
                          cluster.map_shared_rank(&bars[turn], t));
        }
        while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &bars[turn],
                                              PARITY)) {
        }
        for (int r = 0; r < 4; ++r) sum += values[turn][r];
    }
    if (rank == 1) y[t] = sum;
    cluster.sync();
"""


def rows(turn: str = "row % 2", parity: str = "row / 2 % 2", between: str = SYNC_BLOCK) -> str:
    text = ROWS.replace("TURN", turn).replace("PARITY", parity)
    return text.replace("BETWEEN", between)


@every_schedule
def test_phases_follow_each_other(run_kernel: RunKernel, schedule: str) -> None:
    y = run_cluster(run_kernel, rows(), schedule=schedule)
    assert y[0].tolist() == [sum(4 * row + 6 for row in range(6))] * 64
    assert found(run_cluster, run_kernel, rows(), schedule=schedule) == []


@every_schedule
@pytest.mark.parametrize("mistake", [{"turn": "0", "parity": "row % 2"}, {"between": ""}])
def test_values_sent_before_the_last_ones_were_read(
    run_kernel: RunKernel, mistake: dict[str, str], schedule: str
) -> None:
    races = found(run_cluster, run_kernel, rows(**mistake), schedule=schedule)
    assert any("race" in race and "k::values" in race for race in races)
