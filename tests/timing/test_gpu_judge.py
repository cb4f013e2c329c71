"""What judges outputs on the GPU says the same as what judges them here; run on the CPU."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kgen import cpu
from kgen.evidence.check import mixed_rows
from kgen.evidence.inputs import ALL_INPUTS, make
from kgen.evidence.reference import SOFTMAX, Reference, Verdict, reference64, verdict_of
from kgen.launch import Launch, LaunchPlan
from kgen.sources.source import Source
from kgen.specs.choice import Op
from kgen.specs.declared import chosen
from kgen.timing.gpu_judge import ERRORS, THREADS, DeviceOutput, judge_source, worst_of

LOG_SOFTMAX: Any = chosen("op", "log_softmax")
# x holds the output and, behind it, the float64 results; the errors go to y.
CALL = """
extern "C" __global__ void on_cpu(const float* x, float* y, int rows, int cols) {
    const int width = cols / 3;
    const float* expected = x + static_cast<size_t>(rows) * width;
    judge(x, reinterpret_cast<const double*>(expected), reinterpret_cast<double*>(y), rows, width);
}
"""
ADDITIONS = 64


def judged_on_gpu(y: NDArray[np.float32], x: NDArray[np.float32], op: Op, grid: int) -> Verdict:
    """Judge an output by the GPU's kernel."""
    rows, cols = y.shape
    expected = np.concatenate(list(Reference(x).expected(op)))
    packed = np.concatenate([y.ravel(), expected.ravel().view(np.float32)]).reshape(rows, 3 * cols)
    spec: Any = SimpleNamespace(is_host=False, requires="")
    source = Source(spec, "judge", judge_source(op).text + CALL, ("on_cpu",), None)
    launch = Launch("on_cpu", grid, THREADS, 0, ("x", "y", "rows", "cols"))
    errors = cpu.run(source, LaunchPlan(rows, 3 * cols, (launch,)), packed)
    found = errors.ravel().view(np.float64)[: rows * ERRORS].reshape(rows, ERRORS)
    row = int(np.argmax(found[:, 0]))
    col = int(found[row, 1])
    worst = worst_of(found, float(y[row, col]), float(expected[row, col]), op)
    return verdict_of([worst], ADDITIONS, cols, op)


def judged_alike(
    y: NDArray[np.float32], x: NDArray[np.float32], op: Op = SOFTMAX, grid: int = 3
) -> Verdict:
    """Return the verdict of the kernel, which must be that of the reference."""
    here, there = Reference(x).judge(y, ADDITIONS, op), judged_on_gpu(y, x, op, grid)
    assert (there.ok, there.reason) == (here.ok, here.reason)
    assert there.max_abs_error == pytest.approx(here.max_abs_error, rel=1e-9)
    assert there.max_rel_error == pytest.approx(here.max_rel_error, rel=1e-9)
    assert there.row_sum_error == pytest.approx(here.row_sum_error, abs=1e-12)
    return there


@pytest.mark.usefixtures("cxx")
@pytest.mark.parametrize("op", [SOFTMAX, LOG_SOFTMAX], ids=str)
@pytest.mark.parametrize("cols", [8, 256, 1000])
def test_right_outputs_of_every_input(op: Op, cols: int) -> None:
    x = mixed_rows(ALL_INPUTS, 2 * len(ALL_INPUTS), cols)
    assert judged_alike(reference64(x, op).astype(np.float32), x, op).ok


@pytest.mark.usefixtures("cxx")
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0, 0.9])
@pytest.mark.parametrize("place", [(0, 0), (4, 299), (3, 256)])
def test_a_wrong_element_is_named(wrong: float, place: tuple[int, int]) -> None:
    x = make("uniform", 5, 300)
    y = reference64(x).astype(np.float32)
    y[place] = wrong
    verdict = judged_alike(y, x, grid=2)
    assert verdict.worst and verdict.worst[:2] == place and not verdict.ok


@pytest.mark.usefixtures("cxx")
def test_a_row_that_should_be_nan_and_a_sum_that_is_off() -> None:
    x = make("uniform", 6, 40)
    y = reference64(x).astype(np.float32)
    x[2, 7] = np.nan
    assert "the row's NaN or infinities make it NaN" in judged_alike(y, x).reason
    x = make("uniform", 6, 4000)
    y = (reference64(x) * (1 + 1e-5)).astype(np.float32)
    assert "row" in judged_alike(y, x).reason


def test_where_memory_is_short_the_output_is_judged_here() -> None:
    class Full(SimpleNamespace):
        MemoryError = MemoryError

    def fill(array: NDArray[np.float32], address: int) -> None:
        array[:] = y

    def judge(*_: object) -> Verdict:
        raise MemoryError

    x = make("uniform", 3, 5)
    y = reference64(x).astype(np.float32)
    gpu = SimpleNamespace(driver=Full(memcpy_dtoh=fill), active=nullcontext, blaming=nullcontext)
    result = SimpleNamespace(
        __cuda_array_interface__={"typestr": "<f4", "shape": (3, 5), "data": (4096, False)}
    )
    output = DeviceOutput(SimpleNamespace(gpu=gpu, judge=judge), result)  # type: ignore[arg-type]
    assert output.judge(Reference(x), ADDITIONS, SOFTMAX).ok
    y[1, 1] = 1
    assert not output.judge(Reference(x), ADDITIONS, SOFTMAX).ok
