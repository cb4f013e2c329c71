"""Compiles a source for the GPU at hand, and runs or times it there."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from kgen.errors import UsageError
from kgen.gpu.call import Call, Matrix
from kgen.gpu.device import device_info, gpu
from kgen.launch import LaunchPlan
from kgen.sources.source import Source
from kgen.toolchain import CompileOptions, compile_cubin

_DEFAULT_OPTIONS = CompileOptions()


@dataclass(frozen=True)
class Timing:
    """Times of one softmax call: all of its launches and the clearing of its workspace.

    `batch_us` has the mean of each batch of calls in microseconds, by CUDA events; all batches are
    of one size. `host_us` is the median over the batches of what it takes the host to issue a
    call: where that is no less than the time by events, the GPU was waiting for the host.
    `registers` is what a thread has of them, in the kernel that has most.
    """

    batch_us: tuple[float, ...]
    host_us: float
    registers: int

    @property
    def mean_us(self) -> float:
        """The mean over all calls in microseconds."""
        return statistics.fmean(self.batch_us)


def source_module_options(options: CompileOptions = _DEFAULT_OPTIONS) -> dict[str, Any]:
    """Return the arguments with which PyCUDA compiles a source as kgen does.

    `pycuda.compiler.SourceModule(source.text, **source_module_options(options))` gives the same
    machine code, if it finds the same nvcc. Without `no_extern_c` PyCUDA would put the source,
    headers and all, into extern "C"; its cache is off because it misses changes of headers and of
    NVCC_APPEND_FLAGS and trusts damaged files.
    """
    return {"options": list(options.flags()), "no_extern_c": True, "cache_dir": False}


def run(
    source: Source,
    plan: LaunchPlan,
    x: Matrix,
    options: CompileOptions = _DEFAULT_OPTIONS,
    *,
    is_bare: bool = False,
) -> Matrix:
    """Return the kernel's output for `x`, float32 of plan.rows x plan.cols like the result.

    The output starts as NaN, and NaN guard rows surround the input, so elements that are not
    written and values from outside the input show up as NaN. Raises KernelFault naming the kernel
    when a launch fails or memory around the output or the workspace changed; UsageError when the
    shape is too large for the GPU; what compiling raises; and MissingTool as `device_info` does.
    A fault may end the process's CUDA context; every later call then raises KernelFault as well.
    With `is_bare` there are no guards and nothing is filled, as tools want it that watch memory.
    """
    if not plan.launches:
        return np.empty((plan.rows, plan.cols), np.float32)
    with _bound_call(source, plan, x, options, is_bare) as call:
        call.run_step_by_step()
        return call.output()


def time_launches(
    source: Source,
    plan: LaunchPlan,
    x: Matrix,
    options: CompileOptions = _DEFAULT_OPTIONS,
    *,
    warmup: int = 100,
    launches: int = 1000,
    batches: int = 10,
) -> Timing:
    """Time `launches` calls (rounded up to whole batches) after `warmup` untimed ones.

    Allocation, copies and compilation stay outside. The output is not looked at: `run` the plan
    and judge the result first. Raises UsageError for a plan without launches, and what `run` does.
    """
    if not plan.launches:
        raise UsageError(f"a matrix of {plan.rows} x {plan.cols} has nothing to time")
    with _bound_call(source, plan, x, options) as call:
        batch_us, host_us = zip(*call.time(warmup, -(-launches // batches), batches), strict=True)
        return Timing(batch_us, statistics.median(host_us), call.registers)


@contextmanager
def _bound_call(
    source: Source, plan: LaunchPlan, x: Matrix, options: CompileOptions, is_bare: bool = False
) -> Iterator[Call]:
    if x.shape != (plan.rows, plan.cols) or x.dtype != np.float32:
        raise ValueError(
            f"the plan is for float32 {plan.rows} x {plan.cols}, not {x.dtype}{x.shape}"
        )
    binary = compile_cubin(source, device_info().arch, options)
    device = gpu()
    with device.active():
        with device.blaming(f"loading {source.filename}"):
            call = Call(device, binary, plan, x, is_bare)
        try:
            yield call
        finally:
            call.free()
