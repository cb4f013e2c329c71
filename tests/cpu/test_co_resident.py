"""Blocks of a grid that wait for each other through atomics."""

from __future__ import annotations

import pytest

from kgen import cpu
from kgen.errors import KernelFault

from .groups import RunKernel, fault_of, found, run_grid

pytestmark = pytest.mark.slow

every_schedule = pytest.mark.parametrize("schedule", cpu.SCHEDULES)

# Every block leaves a value for the others, and waits until all have.
MEET = """
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> arrived(w[0]);
    if (t == 0) {
        w[1 + blockIdx.x] = blockIdx.x;
        arrived.fetch_add(1, cuda::memory_order_RELEASE);
        while (arrived.load(cuda::memory_order_ACQUIRE) < WANTED) {}  // here
    }
    __syncthreads();
    if (blockIdx.x == 1) y[t] = w[1 + t % gridDim.x];
"""


def meeting(release: str = "release", acquire: str = "acquire", wanted: str = "gridDim.x") -> str:
    text = MEET.replace("RELEASE", release).replace("ACQUIRE", acquire)
    return text.replace("WANTED", wanted)


@every_schedule
@pytest.mark.parametrize("grid", [2, 7, 40])
def test_blocks_wait_for_each_other(run_kernel: RunKernel, grid: int, schedule: str) -> None:
    options = {"grid": grid, "is_co_resident": True, "schedule": schedule}
    y = run_grid(run_kernel, meeting(), **options)
    assert y[0].tolist() == [t % grid for t in range(64)]
    assert found(run_grid, run_kernel, meeting(), **options) == []


@every_schedule
@pytest.mark.parametrize("orders", [("relaxed", "acquire"), ("release", "relaxed")])
def test_relaxed_atomics_order_nothing_but_do_not_race(
    run_kernel: RunKernel, orders: tuple[str, str], schedule: str
) -> None:
    options = {"grid": 2, "is_co_resident": True, "schedule": schedule}
    (race,) = found(run_grid, run_kernel, meeting(*orders), **options)
    assert "of workspace" in race and "race on element 0 " not in race


def test_wide_counters_and_stores(run_kernel: RunKernel) -> None:
    body = """
    cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> flag(
        *reinterpret_cast<unsigned long long*>(w));
    if (blockIdx.x == 1) { if (t == 0) flag.store(1ull << 40, cuda::memory_order_release); }
    else while (flag.load(cuda::memory_order_acquire) >> 40 == 0) {}
    if (blockIdx.x == 0) y[t] = 1;
    """
    for schedule in cpu.SCHEDULES:
        options = {"grid": 2, "is_co_resident": True, "schedule": schedule}
        assert run_grid(run_kernel, body, **options).all()


@every_schedule
def test_a_value_that_never_comes(run_kernel: RunKernel, schedule: str) -> None:
    body = meeting(wanted="4")
    options = {"grid": 3, "is_co_resident": True, "schedule": schedule}
    message = fault_of(run_grid, run_kernel, body, **options)
    assert (
        "thread 0: deadlock, no thread can go on: it polls byte 0 of workspace, which stays 3"
        in (message)
    )


def test_blocks_that_need_not_run_at_the_same_time(run_kernel: RunKernel) -> None:
    message = fault_of(run_grid, run_kernel, meeting(), grid=3)
    assert "which stays 1: no other block of this launch need run now" in message


def test_more_blocks_than_a_gpu_holds(run_kernel: RunKernel) -> None:
    with pytest.raises(
        KernelFault, match=r"with 4225 blocks that wait .* holds at most 4224 blocks"
    ):
        run_grid(run_kernel, meeting(), grid=4225, is_co_resident=True)
