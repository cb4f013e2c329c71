"""Every broken rule is reported with the line of the source, the kernel, the block, the thread."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kgen import cpu
from kgen.cpu.faults import Report
from kgen.cpu.faults import fault_of as describe_fault
from kgen.cpu.process import ProcessEnd, execute
from kgen.errors import KernelFault, MachineTrouble
from kgen.launch import Launch, LaunchPlan
from kgen.sources.source import Source

from .conftest import marked_line

pytestmark = pytest.mark.slow

RunKernel = Callable[..., NDArray[np.float32]]
MakeSource = Callable[..., Source]

KERNEL = """
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
    const int lane = threadIdx.x % 32;
    BODY
}
"""


def kernel(body: str) -> str:
    """Return the text of the kernel `k` with this body."""
    return KERNEL.replace("BODY", body)


def fault_of(run_kernel: RunKernel, body: str, block: int = 64, **options: object) -> str:
    """Return the message of the fault that `body` must cause on its line that ends in `// here`."""
    text = kernel(body)
    with pytest.raises(KernelFault) as caught:
        run_kernel(text, block=block, **options)
    message = str(caught.value)
    place = f"kernel.cu:{marked_line(text)}: kernel k, block 0, thread "
    assert message.startswith(place), message
    return message.removeprefix(place)


@pytest.mark.parametrize("schedule", cpu.SCHEDULES)
@pytest.mark.parametrize("thread", [0, 5, 63])
def test_barrier_that_a_thread_skips_by_returning(
    run_kernel: RunKernel, thread: int, schedule: str
) -> None:
    body = """
    if (threadIdx.x == THREAD) return;
    __syncthreads();  // here
    """
    message = fault_of(run_kernel, body.replace("THREAD", str(thread)), schedule=schedule)
    assert f"__syncthreads is not reached by all 64 threads: thread {thread} has" in message


@pytest.mark.parametrize("schedule", cpu.SCHEDULES)
def test_barriers_on_different_lines(run_kernel: RunKernel, schedule: str) -> None:
    text = kernel("""
    if (threadIdx.x < 32) {
        __syncthreads();  // one
    } else {
        __syncthreads();  // other
    }
    """)
    with pytest.raises(KernelFault) as caught:
        run_kernel(text, schedule=schedule)
    message = str(caught.value)
    assert "not all threads wait in the same __syncthreads: thread" in message
    lines = {int(line) for line in re.findall(r"kernel\.cu:(\d+)", message)}
    assert lines == {marked_line(text, "// one"), marked_line(text, "// other")}


def test_barrier_while_a_lane_waits_in_a_shuffle(run_kernel: RunKernel) -> None:
    body = """
    if (lane == 3) __syncthreads();
    y[threadIdx.x] = __shfl_sync(0xffffffffu, 1.0f, 0);  // here
    """
    message = fault_of(run_kernel, body)
    assert "__shfl_sync with mask 0xffffffff names lane 3, but thread 3 waits in __sync" in message


def test_shuffle_after_a_lane_went_to_the_barrier(run_kernel: RunKernel) -> None:
    body = """
    if (lane == 0) __syncthreads();
    y[threadIdx.x] = __shfl_sync(0xffffffffu, 1.0f, 0);  // here
    """
    message = fault_of(run_kernel, body)
    assert message.startswith(
        "1: __shfl_sync with mask 0xffffffff names lane 0, but thread 0 waits"
    )


@pytest.mark.parametrize("schedule", cpu.SCHEDULES)
def test_shuffle_with_a_lane_that_returned(run_kernel: RunKernel, schedule: str) -> None:
    body = """
    if (lane == 7) return;
    y[threadIdx.x] = __shfl_down_sync(0xffffffffu, 1.0f, 1);  // here
    """
    message = fault_of(run_kernel, body, schedule=schedule)
    assert re.search(r"names lane 7, but thread (7|39) has returned", message)


def test_lane_outside_its_own_mask(run_kernel: RunKernel) -> None:
    body = "__syncwarp(0x0000ffffu);  // here"
    message = fault_of(run_kernel, body)
    assert message == "16: __syncwarp with mask 0x0000ffff does not name the calling lane 16"


def test_full_mask_in_a_partial_warp(run_kernel: RunKernel) -> None:
    body = "y[threadIdx.x] = __any_sync(0xffffffffu, 1);  // here"
    message = fault_of(run_kernel, body, block=48)
    assert message.endswith("names lane 16, but the block has only 48 threads")


def test_lanes_that_call_different_operations(run_kernel: RunKernel) -> None:
    body = """
    if (lane < 31) y[lane] = __shfl_down_sync(0xffffffffu, 1.0f, 1);
    else y[lane] = __shfl_up_sync(0xffffffffu, 1.0f, 1);  // here
    """
    message = fault_of(run_kernel, body)
    assert "31: __shfl_up_sync with mask 0xffffffff of lane 31 can never meet lane 0" in message


def test_lanes_that_call_the_same_operation_on_different_lines(run_kernel: RunKernel) -> None:
    body = """
    if (lane < 31) __syncwarp();
    else __syncwarp();  // here
    """
    text = kernel(body)
    message = fault_of(run_kernel, body)
    assert (
        f"waits in __syncwarp with mask 0xffffffff at kernel.cu:{marked_line(text) - 1}" in message
    )


def test_lanes_with_different_masks(run_kernel: RunKernel) -> None:
    body = "__syncwarp(lane == 9 ? 0xffffffffu : 0x7fffffffu);  // here"
    message = fault_of(run_kernel, body)
    assert "9: __syncwarp with mask 0xffffffff of lane 9 can never meet lane 0" in message


def test_shuffle_from_an_inactive_lane(run_kernel: RunKernel) -> None:
    body = "if (lane < 8) y[lane] = __shfl_down_sync(0x000000ffu, 1.0f, 4);  // here"
    message = fault_of(run_kernel, body)
    assert message.endswith(
        "4: __shfl_down_sync with mask 0x000000ff reads from lane 8, which it does not name"
    )


def test_shuffle_width_that_is_no_power_of_two(run_kernel: RunKernel) -> None:
    body = "y[lane] = __shfl_sync(0xffffffffu, 1.0f, 0, 12);  // here"
    assert "has width 12, which is not a power of two" in fault_of(run_kernel, body)


def test_deadlock_of_three_lanes(run_kernel: RunKernel) -> None:
    body = """
    const unsigned masks[] = {0x3, 0x6, 0x5};
    __syncwarp(masks[lane]);  // here
    """
    message = fault_of(run_kernel, body, block=3)
    assert "deadlock, no thread can go on: thread 0 waits in __syncwarp with mask 0x0" in message


@pytest.mark.parametrize(
    "access",
    [
        "const float4 v = *reinterpret_cast<const float4*>(x + 1 + lane * 4); y[lane] = v.y;",
        "*reinterpret_cast<float2*>(y + 1) = make_float2(1.0f, 2.0f);",
        "y[lane] = __ldg(reinterpret_cast<const float4*>(x + 1)).x;",
        "atomicAdd(reinterpret_cast<unsigned*>(reinterpret_cast<char*>(y) + 1), 1u);",
    ],
)
def test_misaligned_access(run_kernel: RunKernel, access: str) -> None:
    message = fault_of(run_kernel, f"{access}  // here")
    assert re.match(r"0: misaligned access: byte [41] of [xy] is not", message)


def test_vector_access_at_a_shifted_pointer(run_kernel: RunKernel) -> None:
    body = "y[lane] = reinterpret_cast<const float4*>(x)[lane].x;  // here"
    message = fault_of(run_kernel, body, block=4, offsets=(2, 0))
    assert re.search(r"byte 0 of x is not 16-byte aligned, as 'const .*float4' must be", message)


@pytest.mark.parametrize(
    ("access", "words"),
    [
        ("y[1 << 20] = 1.0f;", "access to 4194048 bytes past the end of y"),
        ("const_cast<float*>(x)[2] = 1.0f;", "access to byte 8 of x, which is read-only"),
        ("*reinterpret_cast<volatile float*>(size_t(lane)) = 1.0f;", "access to address 0x0"),
    ],
)
def test_segmentation_fault(run_kernel: RunKernel, access: str, words: str) -> None:
    assert fault_of(run_kernel, f"{access}  // here") == f"0: segmentation fault: {words}"


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ("(1 << 30) - 9", "segmentation fault: access to byte 4294967260 of x"),
        ("(size_t{1} << 32) + 1", "an offset overflows 32 bits: access to byte 17179869188 of x"),
        (
            "-(1LL << 30)",
            "an offset overflows 32 bits: access to 4294967296 bytes before the start",
        ),
    ],
)
def test_rows_without_memory(make_source: MakeSource, index: str, words: str) -> None:
    text = kernel(f"y[size_t{{1}} << 33] = x[{index}];  // here")
    rows = 2**33 // 64 + 1
    launch = Launch("k", 1, 1, 0, ("x", "y", "rows", "cols"))
    plan = LaunchPlan(rows, 64, (launch,), skipped_rows=rows - 1)
    with pytest.raises(KernelFault) as caught:
        cpu.run(make_source(text, "k"), plan, np.zeros((1, 64), np.float32))
    place = f"kernel.cu:{marked_line(text)}: kernel k, block 0, thread 0: "
    assert str(caught.value).startswith(place + words)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo '3 MB for x are not to be had' >&2; exit 5", "3 MB for x are not to be had: free"),
        ("kill -KILL $$", r"program could not finish \(SIGKILL\): free memory"),
        ("kill -XFSZ $$", r"program could not finish \(SIGXFSZ\)"),
        ("exit 6", r"program could not finish \(SIGTERM\)"),
        (
            "echo 'program: error while loading shared libraries: libm.so.6: failed to map' >&2;"
            "exit 127",
            "program could not finish .*failed to map",
        ),
    ],
)
def test_what_the_machine_lacks_is_no_kernels_fault(
    script: str, words: str, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    with pytest.raises(MachineTrouble, match=words):
        execute(program, "", 0, 10.0)


def test_stack_overflow(run_kernel: RunKernel) -> None:
    text = """
    __device__ float deep(float v) { volatile float a[1024]; a[0] = v; return deep(v + 1) + a[0]; }
    extern "C" __global__ void k(const float* x, float* y, int rows, int cols) { y[0] = deep(1); }
    """
    with pytest.raises(KernelFault, match="block 0, thread 0: stack overflow: a thread has 128 KB"):
        run_kernel(text)


def test_timeout_names_the_loop(run_kernel: RunKernel) -> None:
    body = "while (lane == 4 && reinterpret_cast<const volatile float*>(x)[1] > 0) {}  // here"
    started = time.monotonic()
    message = fault_of(run_kernel, body, timeout_s=0.5)
    assert message == "4: still running at the time limit of 0.5 s"
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(("element", "words"), [(-1, "element -1 of 64"), (64, "element 64 of 64")])
def test_writes_around_y(run_kernel: RunKernel, element: int, words: str) -> None:
    with pytest.raises(KernelFault, match=f"kernel k: wrote outside y, to {words}"):
        run_kernel(kernel(f"y[{element}] = 0.0f;"))


def test_writes_behind_the_workspace(run_kernel: RunKernel) -> None:
    text = 'extern "C" __global__ void k(int* workspace) { workspace[2] = 1; }'
    with pytest.raises(KernelFault, match="wrote outside workspace, to element 2 of 2"):
        run_kernel(text, args=("workspace",), workspace_bytes=8)


def test_writes_behind_the_dynamic_shared_memory(run_kernel: RunKernel) -> None:
    text = """
    extern __shared__ float cache[];
    extern "C" __global__ void k(int rows) { cache[threadIdx.x] = 0.0f; }
    """
    with pytest.raises(
        KernelFault, match="block 0: wrote past the end of the 252 bytes of dynamic"
    ):
        run_kernel(text, args=("rows",), shared_bytes=252)


def test_a_fault_on_any_worker_is_reported(run_kernel: RunKernel) -> None:
    text = kernel("if (blockIdx.x >= 301 && lane == 2) __syncwarp(1u);")
    for _ in range(5):
        with pytest.raises(KernelFault, match="block 301, thread 2: "):
            run_kernel(text, grid=1000)


def test_of_several_reports_the_lowest_block_counts(make_source: MakeSource) -> None:
    reports = [Report("k", block, 0, "kernel.cu", 9, 0, "wrong") for block in (4, 2, 3)]
    lines = "\n".join(["printed", *(json.dumps(asdict(report)) for report in reports)])
    plan = LaunchPlan(1, 1, (Launch("k", 5, 32, 0, ()),))
    fault = describe_fault(make_source("", "k"), plan, Path(), ProcessEnd(3, lines, False), 1.0)
    assert str(fault) == "kernel.cu:9: kernel k, block 2, thread 0: wrong"


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (ProcessEnd(-9, "", False), "ended the CPU executor with exit code -9"),
        (
            ProcessEnd(-11, "", False),
            "crashed the CPU executor (SIGSEGV), whose memory an access out",
        ),
        (ProcessEnd(-9, "", True), "killed at its time limit of 1 s"),
        (ProcessEnd(2, "the job ends early\n", False), "the job ends early"),
    ],
)
def test_an_end_without_a_report(make_source: MakeSource, outcome: ProcessEnd, words: str) -> None:
    plan = LaunchPlan(1, 1, (Launch("k", 5, 32, 0, ()),))
    fault = describe_fault(make_source("", "k"), plan, Path(), outcome, 1.0)
    assert str(fault).startswith(f"kernel.cu: kernel k: {words}")


def test_the_users_path_is_named(run_kernel: RunKernel, tmp_path: Path) -> None:
    path = tmp_path / "mine" / "kernel.cu"
    text = kernel("if (lane) __syncthreads();  // here")
    with pytest.raises(KernelFault) as caught:
        run_kernel(text, path=path)
    line = marked_line(text)
    assert str(caught.value).startswith(f"{path}:{line}: kernel k, block 0, thread ")
