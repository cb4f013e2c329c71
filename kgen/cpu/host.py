"""Times a host version: plain C++ as the system's compiler makes it, without the executor."""

from __future__ import annotations

import ctypes
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgen.cache import digest, made_file
from kgen.cpu.build import entry_of
from kgen.cpu.compiler import (
    CUDA_HEADERS,
    LINK_LIBRARIES,
    call_cxx,
    compile_failed,
    describe_cxx,
    find_cxx,
)
from kgen.cpu.unit import UNIT, preprocessed, write_unit
from kgen.launch import LaunchPlan
from kgen.numpy_types import numpy_dtype
from kgen.sources.source import Source

FLAGS = ("-std=c++17", "-O2", "-shared", "-fPIC", f"-I{CUDA_HEADERS}")
REPEATS = 3


def time_host(source: Source, plan: LaunchPlan, x: NDArray[Any]) -> tuple[NDArray[Any], float]:
    """Return what a host version makes of `x` (rows x cols) and the microseconds it takes.

    The time is the least of a few calls. Raises CompileFailed or MissingTool.
    """
    (launch,) = plan.launches
    function = ctypes.CDLL(str(_library(source)))[launch.kernel]
    y = np.full(x.shape, np.nan, numpy_dtype(plan.out_dtype))
    numbers = {"x": x.ctypes.data, "y": y.ctypes.data}
    arguments = [
        ctypes.c_void_p(numbers[name]) if name in numbers else ctypes.c_int(getattr(plan, name))
        for name in launch.args
    ]
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        function(*arguments)
        seconds.append(time.perf_counter() - start)
    return y, min(seconds) * 1e6


def _library(source: Source) -> Path:
    cxx = find_cxx()
    unit = preprocessed(source, cxx, [*FLAGS], f'#include "{source.filename}"\n')
    key = digest(unit, str(cxx), describe_cxx(cxx), *FLAGS)

    def compile_library(target: Path) -> None:
        write_unit(source, unit, target.parent)
        arguments = [*FLAGS, UNIT, *LINK_LIBRARIES, "-o", target.name]
        if messages := call_cxx(cxx, arguments, target.parent):
            raise compile_failed(source, cxx, messages)

    return made_file(entry_of(source.stem, key, ".so"), compile_library)
