"""The driver, the GPU and its CUDA context.

PyCUDA is imported at the first use: without an NVIDIA driver that import fails.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgen.errors import KernelFault, MissingTool
from kgen.text import install_hint

_INSTALL_HINT = install_hint("gpu")
_NO_GPU_ADVICE = (
    "run this on a machine with an NVIDIA GPU, and see that CUDA_VISIBLE_DEVICES does not hide it"
)


@dataclass(frozen=True)
class DeviceInfo:
    """The GPU in use: `arch` is like `sm_90`, `driver` like `580.65.06 (CUDA 13.0)`."""

    name: str
    arch: str
    sm_count: int
    l2_bytes: int
    memory_bytes: int
    driver: str


@functools.cache
def device_info() -> DeviceInfo:
    """Return what is known of the first GPU that CUDA shows ($CUDA_VISIBLE_DEVICES chooses it).

    Raises MissingTool when PyCUDA, the NVIDIA driver or a GPU is missing.
    """
    driver = load_driver()
    device = driver.Device(0)
    major, minor = device.compute_capability()
    attribute = driver.device_attribute
    return DeviceInfo(
        name=device.name(),
        arch=f"sm_{major}{minor}",
        sm_count=device.get_attribute(attribute.MULTIPROCESSOR_COUNT),
        l2_bytes=device.get_attribute(attribute.L2_CACHE_SIZE),
        memory_bytes=device.total_memory(),
        driver=_driver_version(driver),
    )


@functools.cache
def load_driver() -> Any:
    """Return pycuda.driver, initialised and with at least one GPU. Raises MissingTool."""
    try:
        import pycuda.driver as driver
    except ModuleNotFoundError as error:
        raise MissingTool(
            f"PyCUDA is not installed (no module {error.name}): {_INSTALL_HINT}"
        ) from None
    except ImportError as error:
        raise MissingTool(_import_advice(error)) from None
    try:
        driver.init()
        driver.Device(0)
    except driver.Error as error:
        raise MissingTool(f"no GPU found ({error}); {_NO_GPU_ADVICE}") from None
    return driver


def _import_advice(error: ImportError) -> str:
    if "libcuda.so.1" in str(error):
        return (
            "no NVIDIA driver: libcuda.so.1 not found; run this on a machine with an NVIDIA GPU "
            "and its driver"
        )
    return f"PyCUDA cannot be imported ({error}); reinstall it: {_INSTALL_HINT}"


def _driver_version(driver: Any) -> str:
    """Return the versions of the kernel driver, where Linux tells it, and of its CUDA."""
    number = driver.get_driver_version()
    cuda = f"CUDA {number // 1000}.{number % 1000 // 10}"
    try:
        banner = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8")
    except OSError:
        return cuda
    found = re.search(r"Kernel Module\b.*?\s(\d+\.[\d.]+)", banner)
    return f"{found[1]} ({cuda})" if found else cuda


class Gpu:
    """The first GPU with its primary context, which other CUDA libraries in the process share.

    `fault` is empty until an error ends the context; nothing can run in this process after that.
    """

    def __init__(self) -> None:
        self.driver = load_driver()
        self.device = self.driver.Device(0)
        self.context = self.device.retain_primary_context()
        self.fault = ""

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make the context current. Raises KernelFault if an earlier fault ended it."""
        if self.fault:
            raise KernelFault(f"{self.fault}; start a new process to use the GPU again")
        self.context.push()
        try:
            yield
        finally:
            if self.fault:
                # Popping it could fail, and then PyCUDA aborts the process at its end.
                self.context.detach()
            else:
                self.driver.Context.pop()

    @contextmanager
    def blaming(self, culprit: str) -> Iterator[None]:
        """Turn CUDA's errors into a KernelFault of `culprit`, and see if they ended the context."""
        try:
            yield
        except self.driver.Error as error:
            message = f"{culprit} failed on the GPU: {error}"
            if self._context_is_lost():
                self.fault = message = f"{message}; this process's CUDA context is lost"
            raise KernelFault(message) from None

    def _context_is_lost(self) -> bool:
        """Tell by synchronising, where an error that ended the context comes back every time."""
        try:
            self.driver.Context.synchronize()
        except self.driver.Error:
            return True
        return False


@functools.cache
def gpu() -> Gpu:
    """Return the GPU, the same in all of the process. Raises MissingTool as `device_info` does."""
    return Gpu()
