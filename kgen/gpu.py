"""Runs and times kernels on the GPU; the only module that imports PyCUDA.

The cubin that `kgen.toolchain` compiled is what gets loaded, so what was inspected is what runs.
PyCUDA is imported at the first use: without an NVIDIA driver that import fails.
"""

from __future__ import annotations

import functools
import re
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgen.errors import KernelFault, MissingTool, UsageError
from kgen.launch import Launch, LaunchPlan
from kgen.source import Source
from kgen.toolchain import Binary, CompileOptions, KernelResources, compile_cubin

Matrix = NDArray[np.float32]

# Four bytes of it make a NaN: an element that nobody wrote is one, and so is a value from a guard.
POISON = 0xFF
# What mem_alloc aligns to; guards are multiples of it, so that they do not change alignment.
ALIGNMENT = 256
MIN_GUARD_BYTES = 4096

_DEFAULT_OPTIONS = CompileOptions()
# How PyCUDA packs an argument of a kernel: a pointer or a 32-bit int.
_ARGUMENT_FORMATS = {"x": "P", "y": "P", "workspace": "P", "rows": "i", "cols": "i"}


@dataclass(frozen=True)
class DeviceInfo:
    """The GPU in use: `arch` is like `sm_90`, `driver` like `580.65.06 (CUDA 13.0)`."""

    name: str
    arch: str
    sm_count: int
    l2_bytes: int
    memory_bytes: int
    driver: str


@dataclass(frozen=True)
class Timing:
    """Times of one softmax call: all of its launches and the clearing of its workspace.

    `batch_us` has the mean of each batch of calls in microseconds, by CUDA events; all batches are
    of one size. `host_us` is what it takes the host to issue a call: where that is no less than
    the time by events, the GPU was waiting for the host. `registers` is the most that a thread of
    any of the kernels has.
    """

    batch_us: tuple[float, ...]
    host_us: float
    registers: int

    @property
    def mean_us(self) -> float:
        """The mean over all calls in microseconds."""
        return statistics.fmean(self.batch_us)


def device_info() -> DeviceInfo:
    """Return what is known of the first GPU that CUDA shows ($CUDA_VISIBLE_DEVICES chooses it).

    Raises MissingTool when PyCUDA, the NVIDIA driver or a GPU is missing.
    """
    driver = _driver()
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


def source_module_options(options: CompileOptions = _DEFAULT_OPTIONS) -> dict[str, Any]:
    """Return the arguments with which PyCUDA compiles a source as kgen does.

    `pycuda.compiler.SourceModule(source.text, **source_module_options(options))` gives the same
    machine code, if it finds the same nvcc. Without `no_extern_c` PyCUDA would put the source,
    headers and all, into extern "C"; its cache is off because it misses changes of headers and of
    NVCC_APPEND_FLAGS and trusts damaged files.
    """
    return {"options": list(options.flags()), "no_extern_c": True, "cache_dir": False}


def run(
    source: Source, plan: LaunchPlan, x: Matrix, options: CompileOptions = _DEFAULT_OPTIONS
) -> Matrix:
    """Return the kernel's output for `x`, float32 of plan.rows x plan.cols like the result.

    The output starts as NaN, and NaN guard rows surround the input, so elements that are not
    written and values from outside the input show up as NaN. Raises KernelFault naming the kernel
    when a launch fails or memory around the output or the workspace changed; UsageError when the
    GPU lacks the memory; what compiling raises; and MissingTool as `device_info` does. A fault may
    end the process's CUDA context, and then every later call raises KernelFault as well.
    """
    if not plan.launches:
        return np.empty((plan.rows, plan.cols), np.float32)
    with _bound_call(source, plan, x, options) as call:
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
        raise UsageError(f"a matrix of {plan.rows} x {plan.cols} has no elements to time")
    with _bound_call(source, plan, x, options) as call:
        return call.time(warmup, -(-launches // batches), batches)


# --- the driver, the device and its context ------------------------------------------------------


@functools.cache
def _driver() -> Any:
    """Return pycuda.driver, initialised, with at least one GPU."""
    try:
        import pycuda.driver as driver
    except ModuleNotFoundError as error:
        raise MissingTool(
            f'PyCUDA is not installed (no module {error.name}): pip install "kgen[gpu]"'
        ) from None
    except ImportError as error:
        raise MissingTool(_import_advice(error)) from None
    try:
        driver.init()
        count = driver.Device.count()
    except driver.Error as error:
        raise MissingTool(f"no GPU found: {error}; {_NO_GPU_ADVICE}") from None
    if count == 0:
        raise MissingTool(f"no GPU found; {_NO_GPU_ADVICE}")
    return driver


_NO_GPU_ADVICE = (
    "run this on a machine with an NVIDIA GPU, and see that CUDA_VISIBLE_DEVICES does not hide it"
)


def _import_advice(error: ImportError) -> str:
    if "libcuda.so.1" in str(error):
        return (
            "no NVIDIA driver: libcuda.so.1 not found; run this on a machine with an NVIDIA GPU "
            "and its driver"
        )
    return f'PyCUDA cannot be imported ({error}); reinstall it: pip install "kgen[gpu]"'


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


class _Gpu:
    """The first GPU with its primary context, which other CUDA libraries in the process share."""

    def __init__(self) -> None:
        self.driver = _driver()
        self.device = self.driver.Device(0)
        self.context = self.device.retain_primary_context()
        self.fault = ""
        self.lost: list[_Call] = []

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make the context current. Raises KernelFault if it is lost."""
        if self.fault:
            raise KernelFault(f"{self.fault}; start a new process to use the GPU again")
        self.context.push()
        try:
            yield
        finally:
            self._pop()

    def _pop(self) -> None:
        try:
            self.driver.Context.pop()
        except self.driver.Error:
            if not self.fault:
                raise

    @contextmanager
    def blaming(self, culprit: str) -> Iterator[None]:
        """Turn CUDA's errors into a KernelFault of `culprit`, and see if they ended the context."""
        try:
            yield
        except self.driver.Error as error:
            message = f"{culprit} failed on the GPU: {error}"
            if self._context_is_lost():
                self.fault = message = f"{message}; the process's CUDA context is lost"
            raise KernelFault(message) from None

    def _context_is_lost(self) -> bool:
        """An error that ended the context comes back at every synchronisation."""
        try:
            self.driver.Context.synchronize()
        except self.driver.Error:
            return True
        return False


_gpu = functools.cache(_Gpu)


# --- buffers and launches ------------------------------------------------------------------------


class _Buffer:
    """Device memory of `nbytes` at `address` between two guards, all of it poisoned."""

    def __init__(self, driver: Any, name: str, nbytes: int, guard: int) -> None:
        self.driver, self.name, self.nbytes, self.guard = driver, name, nbytes, guard
        self.allocation = driver.mem_alloc(guard + nbytes + guard)
        self.address = int(self.allocation) + guard
        driver.memset_d8(self.address - guard, POISON, guard + nbytes + guard)

    def damage(self) -> str:
        """Return which bytes around the buffer were written to, or an empty string."""
        before = self._changed(self.address - self.guard)
        behind = self._changed(self.address + self.nbytes)
        if before.size:
            return f"{self.guard - int(before[-1])} bytes before the start of {self.name}"
        if behind.size:
            return f"{int(behind[0])} bytes behind the end of {self.name}"
        return ""

    def _changed(self, address: int) -> NDArray[np.intp]:
        guard = np.empty(self.guard, np.uint8)
        self.driver.memcpy_dtoh(guard, address)
        return np.flatnonzero(guard != POISON)


class _Call:
    """One softmax call whose launches are bound to device buffers and ready to be issued."""

    def __init__(self, gpu: _Gpu, binary: Binary, plan: LaunchPlan, x: Matrix) -> None:
        self.gpu, self.driver, self.plan = gpu, gpu.driver, plan
        self.registers = max(kernel.registers for kernel in binary.kernels)
        self.buffers = self._allocate(x)
        self.stream = self.driver.Stream()
        module = self.driver.module_from_buffer(binary.image)
        resources = {kernel.kernel: kernel for kernel in binary.kernels}
        self.steps = [
            self._bind(module, resources[launch.kernel], launch) for launch in plan.launches
        ]

    def _allocate(self, x: Matrix) -> dict[str, _Buffer]:
        row_bytes = self.plan.cols * x.itemsize
        guard = -(-max(row_bytes, MIN_GUARD_BYTES) // ALIGNMENT) * ALIGNMENT
        sizes = {"x": x.nbytes, "y": x.nbytes, "workspace": self.plan.workspace_bytes}
        try:
            buffers = {
                name: _Buffer(self.driver, name, size, guard) for name, size in sizes.items()
            }
        except self.driver.MemoryError:
            raise UsageError(
                f"{self.plan.rows} x {self.plan.cols} needs two matrices of {x.nbytes} bytes, more "
                "than the GPU's memory has free; choose a smaller shape"
            ) from None
        self.driver.memcpy_htod(buffers["x"].address, np.ascontiguousarray(x))
        return buffers

    def _bind(self, module: Any, kernel: KernelResources, launch: Launch) -> Callable[[], None]:
        function = module.get_function(launch.kernel)
        self._allow_shared_memory(function, kernel, launch)
        function.prepare("".join(_ARGUMENT_FORMATS[name] for name in launch.args))
        values = {name: buffer.address for name, buffer in self.buffers.items()}
        values |= {"rows": self.plan.rows, "cols": self.plan.cols}
        return functools.partial(
            function.prepared_async_call,
            (launch.grid, 1),
            (launch.block, 1, 1),
            self.stream,
            *(values[name] for name in launch.args),
            shared_size=launch.shared_bytes,
        )

    def _allow_shared_memory(self, function: Any, kernel: KernelResources, launch: Launch) -> None:
        """Ask for more shared memory than a block gets unasked. Raises UsageError if too much."""
        attribute = self.driver.device_attribute
        limit = self.gpu.device.get_attribute(attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
        static, dynamic = kernel.static_shared_bytes, launch.shared_bytes
        if static + dynamic > limit:
            raise UsageError(
                f"{launch.kernel} needs {static + dynamic} bytes of shared memory a block "
                f"({static} static, {dynamic} dynamic), and this GPU has {limit}; choose a spec "
                "that keeps less in shared memory"
            )
        if static + dynamic > self.gpu.device.get_attribute(attribute.MAX_SHARED_MEMORY_PER_BLOCK):
            function.set_attribute(
                self.driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic
            )

    def issue(self) -> None:
        """Queue the whole call: clear the workspace, then every launch."""
        self._clear_workspace()
        for step in self.steps:
            step()

    def _clear_workspace(self) -> None:
        workspace = self.buffers["workspace"]
        if workspace.nbytes:
            self.driver.memset_d8_async(workspace.address, 0, workspace.nbytes, self.stream)

    def run_step_by_step(self) -> None:
        """Run the call once, waiting for each launch, so that a fault is blamed on its kernel."""
        self._clear_workspace()
        for launch, step in zip(self.plan.launches, self.steps, strict=True):
            with self.gpu.blaming(_describe(launch)):
                step()
                self.stream.synchronize()
        for name in ("y", "workspace"):
            if damage := self.buffers[name].damage():
                raise KernelFault(f"{_describe(*self.plan.launches)} wrote {damage}")

    def output(self) -> Matrix:
        """Return a copy of the output."""
        y = np.empty((self.plan.rows, self.plan.cols), np.float32)
        self.driver.memcpy_dtoh(y, self.buffers["y"].address)
        return y

    def time(self, warmup: int, calls: int, batches: int) -> Timing:
        """Time `batches` of `calls` calls each after `warmup` calls."""
        with self.gpu.blaming(_describe(*self.plan.launches)):
            for _ in range(warmup):
                self.issue()
            self.stream.synchronize()
            times = [self._time_batch(calls) for _ in range(batches)]
        batch_us, host_us = zip(*times, strict=True)
        return Timing(batch_us, statistics.median(host_us), self.registers)

    def _time_batch(self, calls: int) -> tuple[float, float]:
        """Return a call's microseconds by CUDA events, and the host's to issue it."""
        start, end = self.driver.Event(), self.driver.Event()
        # Untimed: the GPU is busy with it while the host issues the first timed ones. The queue is
        # empty before and has room for a batch, so the host is never made to wait in the loop.
        self.issue()
        start.record(self.stream)
        began = time.perf_counter()
        for _ in range(calls):
            self.issue()
        issued = time.perf_counter() - began
        end.record(self.stream)
        end.synchronize()
        return start.time_till(end) * 1e3 / calls, issued * 1e6 / calls

    def free(self) -> None:
        """Give the device memory back."""
        for buffer in self.buffers.values():
            buffer.allocation.free()


@contextmanager
def _bound_call(
    source: Source, plan: LaunchPlan, x: Matrix, options: CompileOptions
) -> Iterator[_Call]:
    if x.shape != (plan.rows, plan.cols) or x.dtype != np.float32:
        raise ValueError(f"x is {x.dtype}{x.shape}, the plan for {plan.rows} x {plan.cols} float32")
    binary = compile_cubin(source, device_info().arch, options)
    gpu = _gpu()
    with gpu.active():
        with gpu.blaming(f"loading {source.filename}"):
            call = _Call(gpu, binary, plan, x)
        try:
            yield call
        finally:
            if gpu.fault:
                gpu.lost.append(call)  # freeing it in a lost context would only print warnings
            else:
                call.free()


def _describe(*launches: Launch) -> str:
    return " and ".join(
        f"{launch.kernel} ({launch.grid} blocks of {launch.block} threads)" for launch in launches
    )
