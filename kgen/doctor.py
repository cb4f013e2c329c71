"""Looks at this machine: which of the things kgen can use are here, and how to get the others."""

from __future__ import annotations

import ctypes
import importlib.metadata
import platform
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kgen.errors import MissingTool
from kgen.text import install_hint
from kgen.toolchain.find import INSTALL_HINT, Tool, find_disassembler, find_nvcc

# CUdevice_attribute numbers of the driver API.
_COMPUTE_CAPABILITY_MAJOR = 75
_COMPUTE_CAPABILITY_MINOR = 76

# The packages of the extra `gpu`, and what each is for.
GPU_PACKAGES = {
    "pycuda": "running kernels on a GPU",
    "cuda-bindings": "timing by CUDA graphs",
    "nvidia-ml-py": "reading clocks and temperature",
}


@dataclass(frozen=True)
class ToolStatus:
    """One thing kgen can use: whether it was `found`, its `version`, `where` it is.

    `needed_for` says what kgen does with it and `install` how to get it. What was not found has an
    empty version, and the reason as `where`.
    """

    what: str
    found: bool
    version: str
    where: str
    needed_for: str
    install: str


def inspect_machine() -> list[ToolStatus]:
    """Return a finding for Python, every program and package that kgen can use, and each GPU.

    Runs the programs for their versions and asks the CUDA driver for its devices; never raises for
    what is missing or broken.
    """
    python = (platform.python_version(), sys.executable)
    return [
        ToolStatus("Python", True, *python, "everything", "python.org"),
        _search("C++ compiler", _cxx, "running kernels on the CPU", "install g++ or clang++"),
        _search("nvcc", lambda: _told(find_nvcc()), "compiling for a GPU", INSTALL_HINT),
        _search(
            "nvdisasm", lambda: _told(find_disassembler()), "showing machine code", INSTALL_HINT
        ),
        _search("ncu", _profiler, "kgen profile", "install NVIDIA Nsight Compute"),
        *(_package(name, use) for name, use in GPU_PACKAGES.items()),
        *_gpus(),
    ]


def _cxx() -> tuple[str, str]:
    from kgen.cpu.compiler import describe_cxx, find_cxx

    path = find_cxx()
    first_line = describe_cxx(path).partition("\n")[0]
    # The last number: `g++ (Debian 12.2.0-14) 12.2.0`.
    versions = re.findall(r"\d+\.\d+\.\d+", first_line)
    return versions[-1] if versions else first_line, str(path)


def _profiler() -> tuple[str, str]:
    from kgen.profile.ncu import find_ncu

    return _told(find_ncu())


def _told(tool: Tool) -> tuple[str, str]:
    return tool.version, f"{tool.path} ({tool.found_by})"


def _search(
    what: str, find: Callable[[], tuple[str, str]], needed_for: str, install: str
) -> ToolStatus:
    try:
        version, where = find()
    except MissingTool as missing:
        return ToolStatus(what, False, "", str(missing), needed_for, install)
    return ToolStatus(what, True, version, where, needed_for, install)


def _package(name: str, needed_for: str) -> ToolStatus:
    """Look for a package without importing it: PyCUDA's import fails where there is no driver."""
    install = install_hint("gpu")
    try:
        installed = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return ToolStatus(name, False, "", "not installed", needed_for, install)
    where = str(installed.locate_file(""))
    return ToolStatus(name, True, installed.version, where, needed_for, install)


def _gpus() -> Iterator[ToolStatus]:
    """Yield the CUDA driver and its GPUs, asked through the driver's own library."""
    needed_for, install = "running kernels on a GPU", "install NVIDIA's driver on a GPU machine"
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        yield ToolStatus("GPU driver", False, "", str(error), needed_for, install)
        return
    version = _int_from(driver.cuDriverGetVersion)
    told = f"CUDA {version // 1000}.{version % 1000 // 10}"
    yield ToolStatus("GPU driver", True, told, "libcuda.so.1", needed_for, install)
    if status := driver.cuInit(0):
        reason = f"cuInit returned {status} ({_error_name(driver, status)})"
        yield ToolStatus("GPU", False, "", reason, needed_for, "use a machine with an NVIDIA GPU")
        return
    for device in range(_int_from(driver.cuDeviceGetCount)):
        yield _gpu(driver, device, needed_for)


def _gpu(driver: ctypes.CDLL, device: int, needed_for: str) -> ToolStatus:
    name = ctypes.create_string_buffer(256)
    driver.cuDeviceGetName(name, len(name), device)
    major = _int_from(driver.cuDeviceGetAttribute, _COMPUTE_CAPABILITY_MAJOR, device)
    minor = _int_from(driver.cuDeviceGetAttribute, _COMPUTE_CAPABILITY_MINOR, device)
    where = name.value.decode(errors="replace")
    return ToolStatus(f"GPU {device}", True, f"sm_{major}{minor}", where, needed_for, "")


def _int_from(function: Callable[..., int], *arguments: int) -> int:
    """Call a driver function whose first parameter receives an int; 0 if it fails."""
    result = ctypes.c_int(0)
    return 0 if function(ctypes.byref(result), *arguments) else result.value


def _error_name(driver: ctypes.CDLL, status: int) -> str:
    name = ctypes.c_char_p()
    driver.cuGetErrorName(status, ctypes.byref(name))
    return (name.value or b"unknown error").decode()
