"""What a run computes: results, memory contents before and after, the order of threads."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kgen import cpu
from kgen.cpu.build import build
from kgen.cpu.run import MIN_THREADS_FOR_WORKERS
from kgen.errors import KernelFault, MachineTrouble, UsageError
from kgen.launch import Launch, LaunchPlan
from kgen.sources.source import Source

from .kernels import REGISTER_CACHED, SHARED_CACHED

RunKernel = Callable[..., NDArray[np.float32]]
MakeSource = Callable[..., Source]


def matrix(rows: int, cols: int) -> NDArray[np.float32]:
    return np.random.default_rng(rows * cols).uniform(-10, 10, (rows, cols)).astype(np.float32)


def softmax(x: NDArray[np.float32]) -> NDArray[np.float64]:
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("schedule", cpu.SCHEDULES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 63), (2, 64), (5, 257), (7, 320)])
def test_register_cached_kernel(
    run_kernel: RunKernel, shape: tuple[int, int], schedule: str
) -> None:
    x = matrix(*shape)
    y = run_kernel(REGISTER_CACHED, x, grid=shape[0], schedule=schedule)
    np.testing.assert_allclose(y, softmax(x), rtol=2e-6)


@pytest.mark.parametrize("schedule", cpu.SCHEDULES)
@pytest.mark.parametrize("cols", [4, 260, 20000])
def test_dynamic_shared_memory(run_kernel: RunKernel, cols: int, schedule: str) -> None:
    x = matrix(3, cols)
    y = run_kernel(SHARED_CACHED, x, grid=3, shared_bytes=4 * cols, schedule=schedule)
    np.testing.assert_allclose(y, softmax(x), rtol=2e-6)


def test_many_blocks_on_several_workers(run_kernel: RunKernel) -> None:
    x = matrix(1025, 257)
    assert x.shape[0] * 64 >= MIN_THREADS_FOR_WORKERS
    y = run_kernel(REGISTER_CACHED, x, grid=1025)
    np.testing.assert_allclose(y, softmax(x), rtol=2e-6)


def test_workers_share_atomics_and_device_variables(run_kernel: RunKernel) -> None:
    text = """
    __device__ unsigned blocks_done;
    extern "C" __global__ void k(const float* x, float* y, unsigned* workspace, int cols) {
        for (int i = 0; i < 200; ++i) atomicAdd(&workspace[i % 2], 1u);
        __syncthreads();
        __threadfence();
        if (threadIdx.x == 0 && atomicAdd(&blocks_done, 1u) == gridDim.x - 1) {
            y[0] = workspace[0];
            y[1] = workspace[1];
        }
    }
    """
    x = np.zeros((1, 2), np.float32)
    grid, block = 512, 64
    args = ("x", "y", "workspace", "cols")
    y = run_kernel(text, x, grid=grid, block=block, args=args, workspace_bytes=8)
    assert grid * block >= MIN_THREADS_FOR_WORKERS
    assert y.tolist() == [[grid * block * 100, grid * block * 100]]


def test_launches_of_a_plan_run_in_order_on_one_workspace(make_source: MakeSource) -> None:
    text = """
    extern "C" __global__ void add(const float* x, float* workspace, int cols) {
        atomicAdd(&workspace[0], x[blockIdx.x * blockDim.x + threadIdx.x]);
    }
    extern "C" __global__ void spread(float* y, const float* workspace, int cols) {
        y[blockIdx.x * blockDim.x + threadIdx.x] = workspace[0] + 1.0f;
    }
    """
    x = np.ones((1, 32768), np.float32)
    launches = (
        Launch("add", 512, 64, 0, ("x", "workspace", "cols")),
        Launch("spread", 512, 64, 0, ("y", "workspace", "cols")),
    )
    y = cpu.run(make_source(text, "add", "spread"), LaunchPlan(1, 32768, launches, 4), x)
    assert np.all(y == 32769)


def test_host_source_is_called_once(make_source: MakeSource) -> None:
    text = """
    static int calls = 0;
    extern "C" void host(const float* x, float* y, int rows, int cols) {
        ++calls;
        for (int i = 0; i < rows * cols; ++i) y[i] = x[i] * 2 + calls;
    }
    """
    x = matrix(3, 5)
    launch = Launch("host", 1, 1, 0, ("x", "y", "rows", "cols"))
    y = cpu.run(make_source(text, "host", is_host=True), LaunchPlan(3, 5, (launch,)), x)
    np.testing.assert_array_equal(y, x * 2 + 1)


def test_kernels_may_print(run_kernel: RunKernel, capfd: pytest.CaptureFixture[str]) -> None:
    text = """
    #include <cstdio>
    extern "C" __global__ void k(float* y, int cols) { printf("block %u\\n", blockIdx.x); y[0] = 1; }
    """
    assert run_kernel(text, np.zeros((1, 1), np.float32), block=1, args=("y", "cols")) == 1
    assert capfd.readouterr().out == "block 0\n"


def test_empty_plan_returns_an_empty_matrix(make_source: MakeSource) -> None:
    y = cpu.run(make_source("not C++"), LaunchPlan(0, 7, ()), np.empty((0, 7), np.float32))
    assert y.shape == (0, 7) and y.dtype == np.float32


def test_only_the_last_rows_are_there(make_source: MakeSource) -> None:
    text = """
    extern "C" __global__ void k(const float* x, float* y, long long* workspace, int cols) {
        const size_t i = static_cast<size_t>(blockIdx.x) * cols + threadIdx.x;
        workspace[blockIdx.x] += blockIdx.x;
        y[i] = x[i] + workspace[blockIdx.x];
    }
    """
    x = matrix(2, 40)
    rows = 2**31 // 40
    launch = Launch("k", rows, 40, 0, ("x", "y", "workspace", "cols"), skipped_blocks=rows - 2)
    plan = LaunchPlan(rows, 40, (launch,), rows * 8, skipped_rows=rows - 2)
    y = cpu.run(make_source(text, "k"), plan, x, offsets=(1, 0))
    sums = np.arange(1, 41) * [[rows - 2], [rows - 1]]
    np.testing.assert_array_equal(y, x + sums.astype(np.float32))


@pytest.fixture
def limit_space(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[int], None]:
    """Give executables so many kilobytes of address space."""

    def limit(kilobytes: int) -> None:
        def build_limited(source: Source) -> Path:
            limited = tmp_path / "limited"
            limited.write_text(f"#!/bin/sh\nulimit -v {kilobytes}\nexec {build(source)}\n")
            limited.chmod(0o755)
            return limited

        # The package's `run` is the function, which hides the module.
        monkeypatch.setattr(sys.modules["kgen.cpu.run"], "build", build_limited)

    return limit


def test_little_address_space_is_enough(
    run_kernel: RunKernel, limit_space: Callable[[int], None]
) -> None:
    limit_space(100000)
    x = matrix(3, 257)
    np.testing.assert_allclose(run_kernel(REGISTER_CACHED, x, grid=3), softmax(x), rtol=2e-6)


def test_less_than_enough_is_told(
    run_kernel: RunKernel, limit_space: Callable[[int], None]
) -> None:
    """Whatever fails first: the loader, a buffer, a thread, a stack or what `new` asks for."""
    x, messages = matrix(256, 257), []
    for kilobytes in range(3000, 60000, 1500):
        limit_space(kilobytes)
        try:
            y = run_kernel(REGISTER_CACHED, x, grid=256)
            np.testing.assert_allclose(y, softmax(x), rtol=2e-6)
        except MachineTrouble as trouble:
            messages.append(str(trouble))
    assert len(messages) > 9 and len(set(messages)) > 3


def test_elements_that_nobody_writes_are_nan(run_kernel: RunKernel) -> None:
    text = """
    extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
        if (threadIdx.x != 3) y[threadIdx.x] = 1.0f;
    }
    """
    assert np.flatnonzero(np.isnan(run_kernel(text))).tolist() == [3]


def test_reads_around_x_give_nan(run_kernel: RunKernel) -> None:
    text = """
    extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
        y[threadIdx.x] = x[static_cast<int>(threadIdx.x) - 1] + x[threadIdx.x + 1];
    }
    """
    assert np.flatnonzero(np.isnan(run_kernel(text))).tolist() == [0, 63]


def test_every_block_finds_its_shared_memory_poisoned(run_kernel: RunKernel) -> None:
    text = """
    struct State { float m = 1.0f; float d = 2.0f; };
    extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
        __shared__ State states[2];
        __shared__ int numbers[2];
        extern __shared__ float dynamic[];
        y[blockIdx.x] = isnan(states[1].m) && isnan(states[0].d) && numbers[1] == -1
            && isnan(dynamic[0]) && isnan(dynamic[9]);
        states[0] = states[1] = State{};
        numbers[1] = 0;
        dynamic[0] = dynamic[9] = 0.0f;
    }
    """
    y = run_kernel(text, np.zeros((1, 4), np.float32), grid=4, block=1, shared_bytes=40)
    assert y.tolist() == [[1, 1, 1, 1]]


def test_dynamic_shared_arrays_of_all_names_are_the_same_memory(run_kernel: RunKernel) -> None:
    text = """
    extern __shared__ float4 vectors[];
    // extern __shared__ float in_a_comment[];
    __device__ float second() {
        extern __shared__ __align__(16) float scalars[];
        return scalars[1];
    }
    extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
        vectors[0] = make_float4(1, 2, 3, 4);
        y[0] = second();
    }
    """
    assert run_kernel(text, np.zeros((1, 1), np.float32), block=1, shared_bytes=16) == 2


ARRIVALS = """
extern "C" __global__ void k(const float* x, float* y, int* workspace, int cols) {
    y[threadIdx.x] = atomicAdd(workspace, 1);
    __syncwarp();
    y[cols / 2 + threadIdx.x] = atomicAdd(workspace, 1);
}
"""


def arrivals(run_kernel: RunKernel, schedule: str, seed: int = 0) -> list[list[int]]:
    """Return when each of 64 threads passed before, and when after, a __syncwarp."""
    x = np.zeros((1, 128), np.float32)
    args = ("x", "y", "workspace", "cols")
    options = {"schedule": schedule, "seed": seed, "args": args, "workspace_bytes": 4}
    return run_kernel(ARRIVALS, x, **options).reshape(2, 64).astype(int).tolist()


def test_schedules_order_the_threads(run_kernel: RunKernel) -> None:
    count = list(range(128))
    assert arrivals(run_kernel, "in_order") == [count[:64], count[64:]]
    assert arrivals(run_kernel, "reversed") == [count[63::-1], count[:63:-1]]
    greedy = arrivals(run_kernel, "warp_greedy")
    assert greedy == [count[:32] + count[64:96], count[32:64] + count[96:]]


def test_random_schedule_depends_on_the_seed_only(run_kernel: RunKernel) -> None:
    first = arrivals(run_kernel, "random", seed=1)
    assert first == arrivals(run_kernel, "random", seed=1)
    assert first != arrivals(run_kernel, "random", seed=2)
    assert sorted(first[0] + first[1]) == list(range(128))


def test_a_missing_barrier_shows_on_some_schedule(run_kernel: RunKernel) -> None:
    text = """
    extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
        __shared__ float shared[64];
        shared[threadIdx.x] = x[threadIdx.x];
        y[threadIdx.x] = shared[63 - threadIdx.x];
    }
    """
    x = np.arange(64, dtype=np.float32).reshape(1, 64)
    wrong = [
        s for s in cpu.SCHEDULES if not np.array_equal(run_kernel(text, schedule=s), x[:, ::-1])
    ]
    assert wrong


def test_pointers_are_aligned_and_can_be_shifted(run_kernel: RunKernel) -> None:
    text = """
    extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
        y[0] = reinterpret_cast<uintptr_t>(x) % 256;
        y[1] = reinterpret_cast<uintptr_t>(y) % 256;
    }
    """
    x = np.zeros((1, 2), np.float32)
    assert run_kernel(text, x, block=1).tolist() == [[0, 0]]
    assert run_kernel(text, x, block=1, offsets=(1, 3)).tolist() == [[4, 12]]


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((2, 3), np.float64),
        np.zeros((3, 2), np.float32),
        np.zeros((3, 2), np.float32).T,
    ],
)
def test_unsuitable_arrays_are_refused(make_source: MakeSource, x: NDArray[np.float32]) -> None:
    with pytest.raises(UsageError, match=r"C-contiguous float32 array \(2, 3\)"):
        cpu.run(make_source(""), LaunchPlan(2, 3, ()), x)


def test_unknown_schedule_is_refused(run_kernel: RunKernel) -> None:
    with pytest.raises(UsageError, match="schedule='fast' is unknown: choose one of in_order"):
        run_kernel(ARRIVALS, schedule="fast")


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        ({"block": 1025}, "launched with 1025 threads in a block; CUDA takes 1 to 1024"),
        ({"grid": 0}, "launched with 0 blocks in the grid"),
        ({"shared_bytes": 232449}, "launched with 232449 bytes of dynamic shared memory"),
        ({"args": ("x", "y")}, "kernel k takes 4 arguments, but the launch passes 2"),
        ({"args": ("x", "y", "rows", "x")}, "kernel k takes no pointer for x"),
        ({"args": ("x", "cols", "rows", "cols")}, "kernel k takes no number for 64"),
    ],
)
def test_impossible_launches_are_refused(
    run_kernel: RunKernel, launch: dict[str, object], message: str
) -> None:
    text = 'extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {}'
    x = np.zeros((1, 64), np.float32)
    with pytest.raises(KernelFault, match=message):
        run_kernel(text, x, **launch)
