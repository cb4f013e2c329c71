"""Judges large outputs on the GPU, where they are: bringing them here takes most of a sweep.

The reference is still the CPU's float64; only the comparison moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgen.evidence.reference import Errors, Reference, Verdict, WorstElement, verdict_of
from kgen.gpu.device import Gpu, device_info
from kgen.gpu.memory import address_of, fetch
from kgen.specs.choice import Op
from kgen.toolchain import compile_cubin
from kgen.toolchain.source import PlainSource

JUDGE_FILE = Path(__file__).with_name("judge.cu")
THREADS, MOST_BLOCKS = 256, 1 << 16
# What is told of a row: the relative error, its column, the absolute error, the error of the sum.
ERRORS = 4


def judge_source(op: Op) -> PlainSource:
    """Return the kernel that compares outputs of an operation with float64."""
    scale = op.error_scale.c({"y": "(y)", "y_max": "(y_max)"})
    defined = {"ERROR_SCALE(y, y_max)": f"({scale})", "THREADS": THREADS, "ERRORS": ERRORS}
    lines = [f"#define {name} {value}\n" for name, value in defined.items()]
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
        self.expected: dict[tuple[Reference, Op], Any] = {}
        self.functions: dict[Op, Any] = {}

    def judge(self, y: int, reference: Reference, serial_additions: int, op: Op) -> Verdict:
        """Judge the output at address `y` as `reference.judge` does.

        Raises the driver's MemoryError where the float64 results do not fit.
        """
        rows, cols = reference.x.shape
        expected = self._expected(reference, op)
        errors = self.driver.mem_alloc(8 * ERRORS * rows)
        self._function(op).prepared_async_call(
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
        got, right = np.empty(1, np.float32), np.empty(1)
        self.driver.memcpy_dtoh(got, y + 4 * place)
        self.driver.memcpy_dtoh(right, int(expected) + 8 * place)
        worst = worst_of(found, float(got[0]), float(right[0]), op)
        return verdict_of([worst], serial_additions, cols, op)

    def _expected(self, reference: Reference, op: Op) -> Any:
        """Return the results in float64 on the GPU."""
        if (reference, op) not in self.expected:
            allocation = self.driver.mem_alloc(8 * reference.x.size)
            address = int(allocation)
            for part in reference.expected(op):
                self.driver.memcpy_htod(address, np.ascontiguousarray(part))
                address += part.nbytes
            self.expected[reference, op] = allocation
        return self.expected[reference, op]

    def _function(self, op: Op) -> Any:
        if op not in self.functions:
            binary = compile_cubin(judge_source(op), device_info().arch)
            function = self.driver.module_from_buffer(binary.image).get_function("judge")
            function.prepare("PPPii")
            self.functions[op] = function
        return self.functions[op]


@dataclass(frozen=True)
class DeviceOutput:
    """An output that lies on the GPU, an array with a `__cuda_array_interface__`."""

    gpu_judge: GpuJudge
    y: Any

    def judge(self, reference: Reference, serial_additions: int, op: Op) -> Verdict:
        """Return the verdict, as `reference.judge` does; that one's where memory is short."""
        gpu = self.gpu_judge.gpu
        with gpu.active(), gpu.blaming("judging the output"):
            try:
                y = address_of(self.y)
                return self.gpu_judge.judge(y, reference, serial_additions, op)
            except gpu.driver.MemoryError:
                return reference.judge(fetch(gpu.driver, self.y), serial_additions, op)
