"""Accesses that nothing orders: each missing barrier is found on every schedule, and no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from kgen import cpu
from kgen.cpu.observation import Observation
from kgen.execute import find_target, observe, source_for
from kgen.launch import Launch, LaunchPlan
from kgen.sources.source import Source
from kgen.specs.rules import problems_for
from kgen.specs.rules.shapes import most_rows
from kgen.specs.variants import checked
from kgen.specs.versions import VERSIONS

from .conftest import marked_line

pytestmark = pytest.mark.slow

MakeSource = Callable[..., Source]
Observe = Callable[..., Observation]

BARRIER = "__syncthreads();"
BETWEEN = f"{BARRIER}  // all have read the result before the next reduction"
ROWS = f"{BARRIER}  // all have read before the next row"
SHARED_V8 = "v8:cache=shared,vec=4,vec_scans=second"
# variant, shape, the text that keeps its accesses in order
NEEDED = [
    ("c1", (2, 257), BETWEEN),
    ("v2", (2, 257), BETWEEN),
    ("v4", (2, 257), BETWEEN),
    ("v1", (2, 257), BETWEEN),
    ("t2", (2, 2500), BETWEEN),
    ("t2", (2, 2500), f"{BARRIER}  // all have read the result before the next tile"),
    ("v9", (258, 257), ROWS),
    ("v9:threads_per_row=64,grid=2", (17, 257), ROWS),
    ("v1", (2, 257), f"{BARRIER}  // every thread's value is visible"),
    ("v1", (2, 257), f"{BARRIER}  // this halving is complete"),
    ("v2", (2, 257), f"{BARRIER}  // every warp's value is visible"),
    ("v5", (2, 257), f"{BARRIER}  // every warp's state is visible"),
    ("v5", (2, 257), f"{BARRIER}  // the row's state is visible"),
    ("k4", (2, 257), f"{BARRIER}  // the row's value is visible"),
    (SHARED_V8, (2, 256), "__syncwarp();"),
    (
        "v8:cache=shared,vec=4,vec_scans=second,threads_per_row=8",
        (2, 256),
        "__syncwarp(row_lanes());",
    ),
]
# Combinations whose threads read what others wrote: parked, cached, in tiles, across blocks.
COMBINED = [
    SHARED_V8,
    "k2:vec=4,vec_scans=second",
    "k3:vec=2",
    "v8:threads=64,vec=2",
    "v2:cache=shared,vec=4",
    "t1:merge=paired",
    "t1:cache=exps_output",
    "t2:cache=registers,tile=512",
    "v5:topology=tree,threads=64",
    "v9:grid=3,update=three_pass",
    "v9:grid=2,threads_per_row=64,cache=shared",
    "v5:threads_per_row=64",
    "v8:threads_per_row=8,cache=shared",
]


def matrix(rows: int, cols: int) -> np.ndarray:
    return np.random.default_rng(cols).uniform(-10, 10, (rows, cols)).astype(np.float32)


@pytest.mark.parametrize("schedule", cpu.SCHEDULES)
@pytest.mark.parametrize(("variant", "shape", "barrier"), NEEDED)
def test_a_missing_barrier_is_a_race(
    variant: str, shape: tuple[int, int], barrier: str, schedule: str
) -> None:
    source = source_for(find_target(variant), *shape)
    assert source.text.count(barrier) == 1
    mutant = replace(
        source, text=source.text.replace(barrier, barrier.replace("__sync", "// __sync"))
    )
    races = observe(mutant, matrix(*shape), schedule=schedule).races
    assert races
    for race in races:
        assert race.first.line and race.second.line
        assert "write" in (race.first.kind, race.second.kind)


@pytest.mark.parametrize("schedule", cpu.SCHEDULES)
@pytest.mark.parametrize("variant", [*VERSIONS, *COMBINED])
def test_our_kernels_break_no_rule(variant: str, schedule: str) -> None:
    spec = checked(variant)
    rows = min(9, most_rows(spec))
    for cols in (257, 1028):
        if problems_for(spec, rows, cols):
            continue
        observation = observe(find_target(variant), matrix(rows, cols), schedule=schedule)
        assert [race.message for race in observation.races] == []
        assert [fault.message for fault in observation.memory_faults] == []


@pytest.mark.parametrize("variant", [v for v in VERSIONS if v != "t1"])
def test_results_do_not_depend_on_the_schedule(variant: str) -> None:
    # t1 adds its blocks' sums in the order of the blocks, which a schedule does not change either;
    # on a GPU that order is chance, so nothing is promised.
    target, spec = find_target(variant), checked(variant)
    rows = min(5, most_rows(spec))
    x = matrix(rows, 257 if problems_for(spec, rows, 515) else 515)
    first, *others = (observe(target, x, schedule=s).y for s in cpu.SCHEDULES)
    for y in others:
        np.testing.assert_array_equal(y.view(np.int32), first.view(np.int32))


@pytest.fixture
def observe_body(make_source: MakeSource) -> Observe:
    """Observe blocks of 64 threads that run a body; `buffer` are 64 words of global memory."""

    def observe(body: str, grid: int = 1, prelude: str = "", **options: object) -> Observation:
        head = 'extern "C" __global__ void k(float* y, int* buffer, int cols) {'
        source = make_source(f"{prelude}{head}\n{body}\n}}", "k")
        launch = Launch("k", grid, 64, 0, ("y", "workspace", "cols"))
        x = np.zeros((1, 1), np.float32)
        return cpu.observe(source, LaunchPlan(1, 1, (launch,), 256), x, **options)

    return observe


def test_both_lines_and_threads_are_named(observe_body: Observe) -> None:
    body = """
    if (threadIdx.x == 40) buffer[3] = 1;  // here
    if (threadIdx.x == 50) y[0] = buffer[3];"""
    (race,) = observe_body(body).races
    line = marked_line(f"kernel\n{body}")
    assert (race.first.line, race.first.thread, race.first.kind) == (line, 40, "write")
    assert (race.second.line, race.second.thread, race.second.kind) == (line + 1, 50, "read")
    assert (race.buffer, race.offset, race.times) == ("workspace", 12, 1)
    assert race.message == (
        f"kernel.cu:{line + 1}: kernel k: race on element 3 of workspace: thread 50 of block 0 "
        f"reads it on line {line + 1}, and thread 40 of block 0 writes it on line {line}, with "
        "nothing that orders the two"
    )


EXCHANGE = "buffer[threadIdx.x] = 1; {} y[0] = 0; if (buffer[threadIdx.x ^ 1] > 9) buffer[40] = 0;"


@pytest.mark.parametrize("schedule", cpu.SCHEDULES)
@pytest.mark.parametrize(
    ("between", "is_race"),
    [
        ("__syncthreads();", False),
        ("__syncwarp();", False),
        ("__syncwarp(threadIdx.x % 4 < 2 ? 0x33333333u : 0xccccccccu);", False),
        ("__syncwarp(threadIdx.x % 2 ? 0xaaaaaaaau : 0x55555555u);", True),
        ("__shfl_sync(0xffffffffu, 1, 0);", True),
        ("__ballot_sync(0xffffffffu, 1);", True),
        ("__threadfence();", True),
        ("", True),
    ],
)
def test_what_orders_memory(
    observe_body: Observe, between: str, is_race: bool, schedule: str
) -> None:
    races = observe_body(EXCHANGE.format(between), schedule=schedule).races
    assert any(race.buffer == "workspace" for race in races) == is_race


def test_a_syncwarp_orders_no_other_warp(observe_body: Observe) -> None:
    body = "buffer[threadIdx.x] = 1; __syncwarp(); if (buffer[threadIdx.x ^ 32] > 9) y[0] = 0;"
    assert observe_body(body).races


@pytest.mark.parametrize("schedule", cpu.SCHEDULES)
def test_blocks_are_not_ordered(observe_body: Observe, schedule: str) -> None:
    body = "if (threadIdx.x == 7) y[0] = blockIdx.x;"
    (race,) = observe_body(body, grid=2, schedule=schedule).races
    assert (race.first.block, race.second.block, race.buffer) == (0, 1, "y")


def test_launches_are_ordered(make_source: MakeSource) -> None:
    text = """
    extern "C" __global__ void put(int* buffer) { buffer[blockIdx.x] = 1; }
    extern "C" __global__ void get(float* y, int* buffer) { if (!blockIdx.x) y[0] = buffer[1]; }
    """
    launches = (Launch("put", 2, 1, 0, ("workspace",)), Launch("get", 2, 1, 0, ("y", "workspace")))
    source = make_source(text, "put", "get")
    observation = cpu.observe(source, LaunchPlan(1, 1, launches, 8), np.zeros((1, 1), np.float32))
    assert observation.races == () and observation.y == 1


def test_atomics_race_with_plain_accesses_only(observe_body: Observe) -> None:
    first = "if (threadIdx.x == 0 && blockIdx.x == 0) y[0] = 1;"
    assert not observe_body(f"atomicAdd(buffer, 1); {first}", grid=2).races
    (race,) = observe_body(f"atomicAdd(buffer, 1); {first} if (*buffer < 0) *y = 2;", grid=2).races[
        :1
    ]
    assert {race.first.kind, race.second.kind} == {"atomic", "read"}


LAST_BLOCK = """
if (threadIdx.x == 0) {
    buffer[1 + blockIdx.x] = 1;
    FENCE
    if (atomicAdd(buffer, 1) == gridDim.x - 1) {
        FENCE
        for (int i = 0; i < gridDim.x; ++i) y[0] = buffer[1 + i];
    }
}
"""


@pytest.mark.parametrize("fence", ["__threadfence();", ""])
def test_fenced_atomics_order_blocks(observe_body: Observe, fence: str) -> None:
    races = observe_body(LAST_BLOCK.replace("FENCE", fence), grid=4).races
    assert bool(races) == (not fence)


@pytest.mark.parametrize("schedule", cpu.SCHEDULES)
def test_a_syncwarp_orders_nothing_that_comes_later(observe_body: Observe, schedule: str) -> None:
    races = observe_body(f"__syncwarp(); {EXCHANGE.format('')}", schedule=schedule).races
    assert "workspace" in [race.buffer for race in races]


def test_neighbouring_bytes_are_no_race(observe_body: Observe) -> None:
    body = "char* bytes = reinterpret_cast<char*>(buffer); bytes[threadIdx.x{}] = 1; y[0] = 0;"
    races = observe_body(body.format("")).races
    assert [race.buffer for race in races] == ["y"]
    races = observe_body(body.format(" / 2")).races
    assert [race.buffer for race in races] == ["workspace", "y"]


@pytest.mark.parametrize(("element", "is_race"), [(4, True), (7, True), (8, False)])
def test_every_element_of_a_vector_counts(
    observe_body: Observe, element: int, is_race: bool
) -> None:
    body = f"""
    if (threadIdx.x == 0) reinterpret_cast<int4*>(buffer)[1] = make_int4(1, 2, 3, 4);
    if (threadIdx.x == 1) y[0] = buffer[{element}];"""
    assert bool(observe_body(body).races) == is_race
