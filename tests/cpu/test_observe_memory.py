"""Accesses that CUDA does not define, and outputs that are not written as they should be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kgen import cpu
from kgen.cpu.observation import MemoryFault, Observation, ObservedFault
from kgen.launch import Launch, LaunchPlan
from kgen.sources.source import Source

from .conftest import marked_line

pytestmark = pytest.mark.slow

MakeSource = Callable[..., Source]
Observe = Callable[..., Observation]

COLS = 64
WRITES_Y = "y[threadIdx.x] = 1.0f;"


@pytest.fixture
def observe_body(make_source: MakeSource) -> Observe:
    """Observe one block of COLS threads that runs a body, on one row of COLS elements."""

    def observe(body: str, shared_bytes: int = 0, grid: int = 1, **options: object) -> Observation:
        text = (
            'extern "C" __global__ void k(const float* x, float* y, float* workspace, int cols) {\n'
        )
        source = make_source(f"{text}{body}\n}}", "k")
        launch = Launch("k", grid, COLS, shared_bytes, ("x", "y", "workspace", "cols"))
        x = np.zeros((1, COLS), np.float32)
        return cpu.observe(source, LaunchPlan(1, COLS, (launch,), 16), x, **options)

    return observe


def line_of(body: str) -> int:
    return marked_line(f"kernel\n{body}")


def only_fault(observation: Observation) -> MemoryFault:
    (fault,) = observation.memory_faults
    return fault


@pytest.mark.parametrize(
    ("statement", "buffer", "offset", "kind", "thread"),
    [
        ("float v = x[threadIdx.x + 1]; y[threadIdx.x] += v * 0;", "x", 256, "read", 63),
        ("float v = x[(int)threadIdx.x - 1]; y[threadIdx.x] += v * 0;", "x", -4, "read", 0),
        ("if (threadIdx.x == 5) y[cols + 2] = 1.0f;", "y", 264, "write", 5),
        ("if (threadIdx.x == 7) workspace[-1] = 1.0f;", "workspace", -4, "write", 7),
        ("if (threadIdx.x == 7) atomicAdd(&workspace[4], 1.0f);", "workspace", 16, "atomic", 7),
    ],
)
def test_accesses_outside_the_buffers(
    observe_body: Observe, statement: str, buffer: str, offset: int, kind: str, thread: int
) -> None:
    body = f"{WRITES_Y}\n{statement}  // here"
    fault = only_fault(observe_body(body))
    assert (fault.what, fault.buffer, fault.offset) == ("out_of_bounds", buffer, offset)
    assert (fault.access.kind, fault.access.thread) == (kind, thread)
    assert (fault.access.line, fault.access.block) == (line_of(body), 0)
    assert fault.message.startswith(
        f"kernel.cu:{line_of(body)}: kernel k, block 0, thread {thread}: "
    )


def test_the_message_says_by_how_much(observe_body: Observe) -> None:
    body = f"{WRITES_Y}\nif (threadIdx.x == 5) y[cols + 2] = 1.0f;  // here"
    message = only_fault(observe_body(body)).message
    assert message.endswith("thread 5: write out of bounds, 8 bytes past the end of y (256 bytes)")


@pytest.mark.parametrize("schedule", cpu.SCHEDULES)
def test_an_index_past_one_shared_array_does_not_hide_in_the_next(
    observe_body: Observe, schedule: str
) -> None:
    body = f"""
    __shared__ float first[8];
    __shared__ float second[8];
    {WRITES_Y}
    if (threadIdx.x == 9) second[0] = 0.0f;
    if (threadIdx.x < 9) first[threadIdx.x] = 1.0f;  // here"""
    fault = only_fault(observe_body(body, schedule=schedule))
    assert (fault.what, fault.offset, fault.access.thread) == ("out_of_bounds", 32, 8)
    assert fault.buffer.endswith("::first") and fault.access.line == line_of(body)


def test_dynamic_shared_memory_ends_where_the_launch_says(observe_body: Observe) -> None:
    body = f"""
    extern __shared__ float cache[];
    {WRITES_Y}
    cache[threadIdx.x] = 1.0f;  // here"""
    fault = only_fault(observe_body(body, shared_bytes=4 * COLS - 4))
    assert (fault.buffer, fault.offset) == ("dynamic shared memory", 4 * COLS - 4)
    assert (fault.access.thread, fault.access.line) == (COLS - 1, line_of(body))
    assert not observe_body(body, shared_bytes=4 * COLS).memory_faults


@pytest.mark.parametrize(
    ("declaration", "shared_bytes"),
    [("__shared__ float values[64];", 0), ("extern __shared__ float values[];", 256)],
)
def test_shared_memory_is_new_for_every_block(
    observe_body: Observe, declaration: str, shared_bytes: int
) -> None:
    body = f"""
    {declaration}
    if (blockIdx.x == 0) values[threadIdx.x] = 1.0f;
    if (blockIdx.x == 1) y[threadIdx.x] = values[threadIdx.x];  // here"""
    fault = only_fault(observe_body(body, shared_bytes=shared_bytes, grid=2))
    assert (fault.what, fault.access.kind, fault.times) == ("uninitialised", "read", COLS)
    assert (fault.access.block, fault.access.line) == (1, line_of(body))


def test_y_is_read_before_it_is_written_and_the_workspace_is_zero(observe_body: Observe) -> None:
    body = "y[threadIdx.x] = y[threadIdx.x] * 0 + workspace[threadIdx.x % 4];  // here"
    fault = only_fault(observe_body(body))
    assert (fault.what, fault.buffer, fault.times) == ("uninitialised", "y", COLS)


def test_elements_that_nobody_writes(observe_body: Observe) -> None:
    fault = only_fault(observe_body("if (threadIdx.x % 16 != 3) y[threadIdx.x] = 1.0f;"))
    assert (fault.what, fault.offset, fault.times, fault.access.thread) == ("unwritten", 12, 4, -1)
    assert "nobody writes element 3 of y" in fault.message


def test_elements_that_two_threads_write_in_turn(observe_body: Observe) -> None:
    body = f"""
    {WRITES_Y}
    __syncthreads();
    y[63 - threadIdx.x] = 2.0f;  // here"""
    observation = observe_body(body)
    fault = only_fault(observation)
    assert (fault.what, fault.access.line) == ("written_twice", line_of(body))
    assert not observation.races


def test_an_element_may_be_parked_and_replaced(observe_body: Observe) -> None:
    body = f"""
    {WRITES_Y}
    __syncthreads();
    const float v = y[63 - threadIdx.x];
    y[63 - threadIdx.x] = v + 1.0f;"""
    assert not observe_body(body).memory_faults


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_shifted_matrices_have_the_same_bounds(observe_body: Observe, offset: int) -> None:
    body = "y[threadIdx.x] = x[threadIdx.x];"
    assert not observe_body(body, offsets=(offset, offset)).memory_faults
    body = "y[threadIdx.x] = x[threadIdx.x] + x[64] * 0;"
    assert observe_body(body, offsets=(offset, 0)).memory_faults[0].offset == 4 * COLS


def test_registers_and_device_variables_are_no_faults(observe_body: Observe) -> None:
    body = f"""
    __shared__ int turn;
    float values[8];
    float* v = values;
    for (int i = 0; i < 8; ++i) v[(i * threadIdx.x) % 8] = x[i];
    if (threadIdx.x == 0) turn = 0;
    {WRITES_Y}
    if (v[threadIdx.x % 8] == 5.0f) y[threadIdx.x] = v[1];"""
    observation = observe_body(body)
    assert not observation.memory_faults and not observation.races


@pytest.mark.parametrize(
    ("statement", "offset", "kind"),
    [
        ("first[50000] = 1.0f;", 200000, "write"),
        ("first[-50000] = 1.0f;", -200000, "write"),
        ("y[threadIdx.x] += first[5000] * 0;", 20000, "read"),
    ],
)
def test_an_index_that_leads_out_of_the_gaps_ends_the_run_before_it_does_harm(
    observe_body: Observe, statement: str, offset: int, kind: str
) -> None:
    body = f"""
    __shared__ float first[8];
    {WRITES_Y}
    if (threadIdx.x < 8) first[threadIdx.x] = 1.0f;
    __syncthreads();
    if (threadIdx.x == 3) {statement}  // here"""
    with pytest.raises(ObservedFault) as ended:
        observe_body(body)
    (fault,) = ended.value.memory_faults
    assert (fault.what, fault.offset, fault.access.kind) == ("out_of_bounds", offset, kind)
    assert fault.buffer.startswith("shared array ") and fault.buffer.endswith("::first")
    assert (fault.access.line, ended.value.line) == (line_of(body), line_of(body))
    assert str(ended.value) == fault.message and "(32 bytes)" in fault.message


def test_local_arrays_are_no_strays(observe_body: Observe) -> None:
    body = """
    __shared__ float first[8];
    float own[64];
    for (int i = 0; i < 64; ++i) own[i] = x[i];
    if (threadIdx.x < 8) first[threadIdx.x] = own[threadIdx.x + cols - 64];
    y[threadIdx.x] = own[(threadIdx.x * 7) % cols];"""
    assert not observe_body(body).memory_faults


def test_what_was_found_before_a_fault_comes_with_it(observe_body: Observe) -> None:
    body = """
    __shared__ float first[8];
    if (threadIdx.x == 0) y[0] = first[1];
    if (threadIdx.x) __syncthreads();"""
    with pytest.raises(ObservedFault, match="__syncthreads is not reached") as ended:
        observe_body(body)
    assert [fault.what for fault in ended.value.memory_faults] == ["uninitialised"]
