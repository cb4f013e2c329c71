"""Compiles a source for the GPU at hand and runs it there."""

from __future__ import annotations

from typing import Any

import numpy as np

from kgen.gpu.call import Call
from kgen.gpu.device import device_info, gpu
from kgen.gpu.memory import Matrix
from kgen.launch import LaunchPlan
from kgen.numpy_types import numpy_dtype
from kgen.toolchain import Binary, CompileOptions, compile_cubin
from kgen.toolchain.source import Compilable

_DEFAULT_OPTIONS = CompileOptions()


def source_module_options(options: CompileOptions = _DEFAULT_OPTIONS) -> dict[str, Any]:
    """Return the arguments with which PyCUDA compiles a source as kgen does.

    `pycuda.compiler.SourceModule(source.text, **source_module_options(options))` gives the same
    machine code, if it finds the same nvcc. Without `no_extern_c` PyCUDA would put the source,
    headers and all, into extern "C"; its cache is off because it misses changes of headers and of
    NVCC_APPEND_FLAGS and trusts damaged files.
    """
    return {"options": list(options.flags()), "no_extern_c": True, "cache_dir": False}


def run(
    source: Compilable,
    plan: LaunchPlan,
    x: Matrix,
    options: CompileOptions = _DEFAULT_OPTIONS,
    *,
    binary: Binary | None = None,
    is_bare: bool = False,
) -> Matrix:
    """Return the kernel's output for `x`, of plan.rows x plan.cols like the result.

    The output starts as NaN, and NaN guard rows surround the input, so elements that are not
    written and values from outside the input show up as NaN. Raises KernelFault naming the kernel
    when a launch fails or memory around the output or the workspace changed; UsageError when the
    shape is too large for the GPU; what compiling raises; and MissingTool as `device_info` does.
    A fault may end the process's CUDA context; every later call then raises KernelFault as well.
    A `binary` of the source spares compiling it. With `is_bare` there are no guards and nothing is
    filled, as tools want it that watch memory.
    """
    if not plan.launches:
        return np.empty((plan.rows, plan.cols), numpy_dtype(plan.out_dtype))
    if x.shape != (plan.rows, plan.cols) or x.dtype != numpy_dtype(plan.dtype):
        raise ValueError(
            f"the plan is for {plan.dtype} {plan.rows} x {plan.cols}, not {x.dtype}{x.shape}"
        )
    binary = binary or compile_cubin(source, device_info().arch, options)
    with gpu().active():
        call = called(source.filename, binary, plan, x, is_bare)
        try:
            return call.output()
        finally:
            call.free()


def called(name: str, binary: Binary, plan: LaunchPlan, x: Matrix, is_bare: bool = False) -> Call:
    """Return a call that has run, for who frees it; as `run`, while the GPU is active."""
    with gpu().blaming(f"loading {name}"):
        call = Call(gpu(), binary, plan, x, is_bare)
    try:
        call.run_step_by_step()
    except BaseException:
        call.free()
        raise
    return call
