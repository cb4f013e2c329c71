"""Judges large outputs on the GPU, where they are: bringing them here takes most of a sweep.

The reference is still the CPU's float64; only the comparison moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgen.evidence.reference import Criterion, Errors, Reference, Verdict, WorstElement, verdict_of
from kgen.gpu.device import Gpu, device_info
from kgen.gpu.memory import address_of, fetch
from kgen.numpy_types import numpy_dtype
from kgen.specs.choice import Element, Op
from kgen.toolchain import compile_cubin
from kgen.toolchain.source import PlainSource

JUDGE_FILE = Path(__file__).with_name("judge.cu")
THREADS, MOST_BLOCKS = 256, 1 << 16
# What is told of a row: the relative error, its column, the absolute error, the error of the sum.
ERRORS = 4


def judge_source(asked: Criterion) -> PlainSource:
    """Return the kernel that compares outputs with float64."""
    element = asked.element
    defined = {
        "ELEMENT": element.c_type,
        "TO_DOUBLE(x)": f"double({element.to_compute}(x))",
        "ERROR_SCALE(y, y_max)": f"({asked.op.error_scale.c({'y': '(y)', 'y_max': '(y_max)'})})",
        "SLACK(y)": f"({asked.relative_slack!r} * fabs(y) + {asked.absolute_slack!r})",
        "THREADS": THREADS,
        "ERRORS": ERRORS,
    }
    lines = [f"#include <{element.includes}>\n"] if element.includes else []
    lines += [f"#define {name} {value}\n" for name, value in defined.items()]
    text = "".join(lines) + JUDGE_FILE.read_text(encoding="utf-8")
    return PlainSource("judge", text, ("judge",))


def worst_of(rows: NDArray[np.float64], got: float, expected: float, op: Op) -> Errors:
    """Return the largest errors of all rows, of ERRORS numbers each; `got` is the worst element."""
    row, sum_row = int(np.argmax(rows[:, 0])), int(np.argmax(rows[:, 3]))
    return Errors(
        max_abs_error=float(rows[:, 2].max()),
        max_rel_error=float(rows[row, 0]),
        worst=WorstElement(row, int(rows[row, 1]), got, expected),
        row_sum_error=float(rows[sum_row, 3]) if op.sum_is_one else 0.0,
        worst_sum_row=sum_row,
    )


class GpuJudge:
    """Compares outputs on the GPU. Made and used while its context is active."""

    def __init__(self, gpu: Gpu, stream: Any) -> None:
        self.gpu, self.driver, self.stream = gpu, gpu.driver, stream
        self.expected: dict[tuple[Reference, Op, Element], Any] = {}
        self.functions: dict[str, Any] = {}

    def judge(self, y: int, reference: Reference, asked: Criterion) -> Verdict:
        """Judge the output at address `y` as `reference.judge` does.

        Raises the driver's MemoryError where the float64 results do not fit.
        """
        rows, cols = reference.x.shape
        expected = self._expected(reference, asked)
        errors = self.driver.mem_alloc(8 * ERRORS * rows)
        self._function(asked).prepared_async_call(
            (min(rows, MOST_BLOCKS), 1),
            (THREADS, 1, 1),
            self.stream,
            *(y, int(expected), int(errors), rows, cols),
            shared_size=0,
        )
        self.stream.synchronize()
        found = np.empty((rows, ERRORS))
        self.driver.memcpy_dtoh(found, int(errors))
        errors.free()
        row = int(np.argmax(found[:, 0]))
        place = row * cols + int(found[row, 1])
        got, right = np.empty(1, numpy_dtype(asked.element)), np.empty(1)
        self.driver.memcpy_dtoh(got.view(np.uint8), y + got.itemsize * place)
        self.driver.memcpy_dtoh(right, int(expected) + 8 * place)
        worst = worst_of(found, float(got[0]), float(right[0]), asked.op)
        return verdict_of([worst], asked, cols)

    def _expected(self, reference: Reference, asked: Criterion) -> Any:
        """Return the results in float64 on the GPU."""
        key = (reference, asked.op, asked.element)
        if key not in self.expected:
            allocation = self.driver.mem_alloc(8 * reference.x.size)
            address = int(allocation)
            for part in map(asked.stored, reference.expected(asked.op)):
                self.driver.memcpy_htod(address, np.ascontiguousarray(part))
                address += part.nbytes
            self.expected[key] = allocation
        return self.expected[key]

    def _function(self, asked: Criterion) -> Any:
        source = judge_source(asked)
        if source.text not in self.functions:
            binary = compile_cubin(source, device_info().arch)
            function = self.driver.module_from_buffer(binary.image).get_function("judge")
            function.prepare("PPPii")
            self.functions[source.text] = function
        return self.functions[source.text]


@dataclass(frozen=True)
class DeviceOutput:
    """An output that lies on the GPU, an array with a `__cuda_array_interface__`."""

    gpu_judge: GpuJudge
    y: Any

    def judge(self, reference: Reference, asked: Criterion) -> Verdict:
        """Return the verdict, as `reference.judge` does; that one's where memory is short."""
        gpu = self.gpu_judge.gpu
        with gpu.active(), gpu.blaming("judging the output"):
            try:
                y = address_of(self.y, asked.element)
                return self.gpu_judge.judge(y, reference, asked)
            except gpu.driver.MemoryError:
                return reference.judge(fetch(gpu.driver, self.y, asked.element), asked)
