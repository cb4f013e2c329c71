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
from kgen.evidence.reference import (
    SOFTMAX,
    Criterion,
    Reference,
    Verdict,
    criterion_of,
    reference64,
    verdict_of,
)
from kgen.launch import Launch, LaunchPlan
from kgen.numpy_types import element_of, finfo, rounded
from kgen.sources.source import Source
from kgen.specs.choice import Op
from kgen.specs.declared import chosen
from kgen.timing.gpu_judge import ERRORS, THREADS, DeviceOutput, judge_source, worst_of

LOG_SOFTMAX: Any = chosen("op", "log_softmax")
# x holds the float64 results and, behind them, the output; the errors go to y.
CALL = """
extern "C" __global__ void on_cpu(const float* x, float* y, int rows, int cols) {
    const int width = cols / 4;
    const double* expected = reinterpret_cast<const double*>(x);
    const ELEMENT* got = reinterpret_cast<const ELEMENT*>(expected + rows * width);
    judge(got, expected, reinterpret_cast<double*>(y), rows, width);
}
"""
ADDITIONS = 64


def judged_on_gpu(y: NDArray[Any], x: NDArray[Any], asked: Criterion, grid: int) -> Verdict:
    """Judge an output by the GPU's kernel."""
    rows, cols = y.shape
    expected = np.concatenate([asked.stored(part) for part in Reference(x).expected(asked.op)])
    packed = np.zeros((rows, 4 * cols), np.float32)
    memory = packed.reshape(-1).view(np.uint8)
    memory[: expected.nbytes] = expected.reshape(-1).view(np.uint8)
    memory[expected.nbytes : expected.nbytes + y.nbytes] = y.reshape(-1).view(np.uint8)
    spec: Any = SimpleNamespace(is_host=False, requires="")
    source = Source(spec, "judge", judge_source(asked).text + CALL, ("on_cpu",), None)
    launch = Launch("on_cpu", grid, THREADS, 0, ("x", "y", "rows", "cols"))
    errors = cpu.run(source, LaunchPlan(rows, 4 * cols, (launch,)), packed)
    found = errors.ravel().view(np.float64)[: rows * ERRORS].reshape(rows, ERRORS)
    row = int(np.argmax(found[:, 0]))
    col = int(found[row, 1])
    worst = worst_of(found, float(y[row, col]), float(expected[row, col]), asked.op)
    return verdict_of([worst], asked, cols)


def judged_alike(y: NDArray[Any], x: NDArray[Any], op: Op = SOFTMAX, grid: int = 3) -> Verdict:
    """Return the verdict of the kernel, which must be that of the reference."""
    asked = criterion_of(element_of(y), ADDITIONS, op)
    here, there = Reference(x).judge(y, asked), judged_on_gpu(y, x, asked, grid)
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
@pytest.mark.parametrize("word", ["float16", "bfloat16", "float64"])
def test_outputs_of_every_type(word: str) -> None:
    element: Any = chosen("dtype", word)
    x = mixed_rows(ALL_INPUTS, len(ALL_INPUTS), 100, element)
    y = rounded(reference64(x), word)
    assert judged_alike(y, x).ok
    y[0, 7] *= 1 + 4 * finfo(word).eps
    assert judged_alike(y, x).ok == (word == "float64")


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

    def fill(array: NDArray[np.uint8], address: int) -> None:
        array[:] = y.view(np.uint8)

    def judge(*_: object) -> Verdict:
        raise MemoryError

    x = make("uniform", 3, 5)
    y = reference64(x).astype(np.float32)
    gpu = SimpleNamespace(driver=Full(memcpy_dtoh=fill), active=nullcontext, blaming=nullcontext)
    result = SimpleNamespace(
        __cuda_array_interface__={"typestr": "<f4", "shape": (3, 5), "data": (4096, False)}
    )
    output = DeviceOutput(SimpleNamespace(gpu=gpu, judge=judge), result)  # type: ignore[arg-type]
    assert output.judge(Reference(x), Criterion(ADDITIONS, SOFTMAX)).ok
    y[1, 1] = 1
    assert not output.judge(Reference(x), Criterion(ADDITIONS, SOFTMAX)).ok
