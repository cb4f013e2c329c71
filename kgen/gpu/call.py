"""One softmax call on the GPU: its buffers, its bound launches, and the timing of them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgen.errors import KernelFault, UsageError
from kgen.gpu.device import Gpu
from kgen.launch import Launch, LaunchPlan
from kgen.toolchain import Binary, KernelResources

Matrix = NDArray[np.float32]

# Four bytes of it make a NaN: an element that nobody wrote is one, and so is a value from a guard.
POISON = 0xFF
# What mem_alloc aligns to; guards are multiples of it, so that they do not change alignment.
ALIGNMENT = 256
MIN_GUARD_BYTES = 4096

# How PyCUDA packs an argument of a kernel: a pointer, or an int of 32 bits (checked to fit).
_FORMATS = {"x": "P", "y": "P", "workspace": "P", "rows": "i", "cols": "i"}


class Buffer:
    """Device memory of `nbytes` at `address` between two guards, all of it poisoned.

    Without a guard it is left as it was allocated: then its ends and what nobody wrote are for a
    tool to see that watches memory.
    """

    def __init__(self, driver: Any, nbytes: int, guard: int) -> None:
        self.driver, self.nbytes, self.guard = driver, nbytes, guard
        self.allocation = driver.mem_alloc(max(guard + nbytes + guard, 1))
        self.address = int(self.allocation) + guard
        if guard:
            driver.memset_d8(self.address - guard, POISON, guard + nbytes + guard)

    def damage(self) -> str:
        """Return where the nearest changed byte of the guards is, or an empty string."""
        if not self.guard:
            return ""
        before = self._changed(self.address - self.guard)
        behind = self._changed(self.address + self.nbytes)
        if before.size:
            return f"byte {self.guard - int(before[-1])} before the start of"
        return f"byte {int(behind[0]) + 1} behind the end of" if behind.size else ""

    def _changed(self, address: int) -> NDArray[np.intp]:
        guard = np.empty(self.guard, np.uint8)
        self.driver.memcpy_dtoh(guard, address)
        return np.flatnonzero(guard != POISON)


class Call:
    """The launches of a plan, bound to buffers of their own and ready to be issued.

    Made and used while the GPU's context is active. `x` is float32 of plan.rows x plan.cols. With
    `is_bare` the buffers have neither guards nor poison.
    Raises UsageError when the GPU lacks the memory, or a block the shared memory.
    """

    def __init__(
        self, gpu: Gpu, binary: Binary, plan: LaunchPlan, x: Matrix, is_bare: bool = False
    ) -> None:
        self.gpu, self.driver, self.plan = gpu, gpu.driver, plan
        self.kernels = " and ".join(_describe(launch) for launch in plan.launches)
        self.registers = max(kernel.registers for kernel in binary.kernels)
        self.buffers = self._allocate(x, is_bare)
        self.stream = self.driver.Stream()
        # In stream order, each with what to call it when it fails.
        self.steps = [*self._clearing(), *self._launches(binary)]

    def _allocate(self, x: Matrix, is_bare: bool) -> dict[str, Buffer]:
        row_bytes = self.plan.cols * x.itemsize
        least = -(-max(row_bytes, MIN_GUARD_BYTES) // ALIGNMENT) * ALIGNMENT
        guard = 0 if is_bare else least
        sizes = {"x": x.nbytes, "y": x.nbytes, "workspace": self.plan.workspace_bytes}
        try:
            buffers = {name: Buffer(self.driver, size, guard) for name, size in sizes.items()}
        except self.driver.MemoryError:
            raise UsageError(
                f"a matrix of {self.plan.rows} x {self.plan.cols} takes {x.nbytes} bytes, and the "
                "GPU has not memory for two of them; choose a smaller shape"
            ) from None
        self.driver.memcpy_htod(buffers["x"].address, np.ascontiguousarray(x))
        return buffers

    def _clearing(self) -> list[tuple[str, Callable[[], None]]]:
        workspace = self.buffers["workspace"]
        if not workspace.nbytes:
            return []
        clear = functools.partial(
            self.driver.memset_d8_async, workspace.address, 0, workspace.nbytes, self.stream
        )
        return [("clearing the workspace", clear)]

    def _launches(self, binary: Binary) -> list[tuple[str, Callable[[], None]]]:
        module = self.driver.module_from_buffer(binary.image)
        resources = {kernel.kernel: kernel for kernel in binary.kernels}
        return [
            (_describe(launch), self._bind(module, resources[launch.kernel], launch))
            for launch in self.plan.launches
        ]

    def _bind(self, module: Any, kernel: KernelResources, launch: Launch) -> Callable[[], None]:
        function = module.get_function(launch.kernel)
        self._allow_shared_memory(function, kernel, launch)
        function.prepare("".join(_FORMATS[name] for name in launch.args))
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
        attribute = self.driver.device_attribute
        most = self.gpu.device.get_attribute(attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
        unasked = self.gpu.device.get_attribute(attribute.MAX_SHARED_MEMORY_PER_BLOCK)
        static, dynamic = kernel.static_shared_bytes, launch.shared_bytes
        if static + dynamic > most:
            raise UsageError(
                f"{launch.kernel} needs {static + dynamic} bytes of shared memory a block "
                f"({static} static, {dynamic} dynamic), and this GPU has {most}; choose a version "
                "that keeps less in shared memory"
            )
        if static + dynamic > unasked:
            function.set_attribute(
                self.driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic
            )

    def issue(self) -> None:
        """Queue the whole call: clear the workspace, then every launch."""
        for _, step in self.steps:
            step()

    def run_step_by_step(self) -> None:
        """Run the call once, waiting for each launch, so that a fault is blamed on its kernel.

        Raises KernelFault for that, and when memory around the output or workspace has changed.
        """
        for name, step in self.steps:
            with self.gpu.blaming(name):
                step()
                self.stream.synchronize()
        for name in ("y", "workspace"):
            if damage := self.buffers[name].damage():
                raise KernelFault(f"{self.kernels} wrote to {damage} {name}")

    def output(self) -> Matrix:
        """Return a copy of the output."""
        y = np.empty((self.plan.rows, self.plan.cols), np.float32)
        self.driver.memcpy_dtoh(y, self.buffers["y"].address)
        return y

    def time(self, warmup: int, calls: int, batches: int) -> list[tuple[float, float]]:
        """Issue `warmup` calls, then `batches` of `calls` each.

        Returns for each batch the mean microseconds of a call by CUDA events, and the mean that it
        takes the host to issue one. Raises KernelFault.
        """
        with self.gpu.blaming(self.kernels):
            for _ in range(warmup):
                self.issue()
            self.stream.synchronize()
            return [self._time_batch(calls) for _ in range(batches)]

    def _time_batch(self, calls: int) -> tuple[float, float]:
        start, end = self.driver.Event(), self.driver.Event()
        # Untimed: it keeps the GPU busy while the host issues the first of those that count.
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
        """Give the device memory back; what lies in a lost context is gone already."""
        if not self.gpu.fault:
            for buffer in self.buffers.values():
                buffer.allocation.free()


def _describe(launch: Launch) -> str:
    return f"{launch.kernel} ({launch.grid} blocks of {launch.block} threads)"
