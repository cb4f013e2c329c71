"""The launches of a plan, bound to device memory and ready to be issued."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from kgen.errors import KernelFault, UsageError
from kgen.gpu.device import Gpu
from kgen.gpu.memory import ALIGNMENT, MIN_GUARD_BYTES, Buffer, Matrix, no_memory
from kgen.launch import Launch, LaunchPlan
from kgen.limits import PORTABLE_CLUSTER_BLOCKS
from kgen.numpy_types import numpy_dtype
from kgen.toolchain import Binary, KernelResources

# How PyCUDA packs an argument of a kernel: a pointer, or an int of 32 bits (checked to fit).
_FORMATS = {"x": "P", "y": "P", "workspace": "P", "launch": "I", "rows": "i", "cols": "i"}
# CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, which PyCUDA has no name for.
_NON_PORTABLE_CLUSTER = 14


class Step(NamedTuple):
    """One operation of a call: what to call it when it fails, and how to issue it."""

    name: str
    issue: Callable[[], None]


class Kernels:
    """A plan's launches of a binary that is loaded into the current context.

    Raises UsageError when a block needs more shared memory than the GPU has.
    """

    def __init__(self, gpu: Gpu, binary: Binary, plan: LaunchPlan) -> None:
        self.gpu, self.driver, self.plan = gpu, gpu.driver, plan
        self.names = " and ".join(_describe(launch) for launch in plan.launches)
        module = self.driver.module_from_buffer(binary.image)
        resources = {kernel.kernel: kernel for kernel in binary.kernels}
        self.functions = [
            self._prepared(module, resources[launch.kernel], launch) for launch in plan.launches
        ]

    def bind(self, buffers: Mapping[str, int], stream: Any) -> list[Step]:
        """Return the steps of a call in stream order: clear the workspace, then every launch.

        `buffers` has the addresses of `x`, `y`, `workspace` and the plan's further ones.
        """
        values = {**buffers, "rows": self.plan.rows, "cols": self.plan.cols}
        begin = [*self._restoring(buffers, stream), *self._filling(buffers, stream)]
        launches = [
            Step(_describe(launch), self._launching(function, launch, values, stream))
            for function, launch in zip(self.functions, self.plan.launches, strict=True)
        ]
        return [*begin, *self._clearing(buffers["workspace"], stream), *launches]

    def _restoring(self, buffers: Mapping[str, int], stream: Any) -> list[Step]:
        """Return the step that puts the input where kernels work in place."""
        if not self.plan.in_place:
            return []
        nbytes = self.plan.rows * self.plan.cols * self.plan.dtype.bytes
        copy = functools.partial(
            self.driver.memcpy_dtod_async, buffers["y"], buffers["x"], nbytes, stream
        )
        return [Step("copying the input", copy)]

    def _filling(self, buffers: Mapping[str, int], stream: Any) -> list[Step]:
        """Return the steps that fill further buffers with floats."""
        return [
            Step(
                f"filling {each.name}",
                functools.partial(
                    self.driver.memset_d32_async,
                    buffers[each.name],
                    _float_bits(each.initial),
                    each.nbytes // 4,
                    stream,
                ),
            )
            for each in self.plan.buffers
            if each.initial is not None
        ]

    def _clearing(self, workspace: int, stream: Any) -> list[Step]:
        if not (nbytes := self.plan.workspace_bytes):
            return []
        if self.plan.keeps_workspace:
            self.driver.memset_d8(workspace, 0, nbytes)
            return []
        clear = functools.partial(self.driver.memset_d8_async, workspace, 0, nbytes, stream)
        return [Step("clearing the workspace", clear)]

    def _prepared(self, module: Any, kernel: KernelResources, launch: Launch) -> Any:
        function = module.get_function(launch.kernel)
        self._allow_shared_memory(function, kernel, launch)
        if launch.cluster_size > PORTABLE_CLUSTER_BLOCKS:
            function.set_attribute(self.driver.function_attribute(_NON_PORTABLE_CLUSTER), 1)
        formats = {**_FORMATS, **{each.name: "P" for each in self.plan.buffers}}
        formats |= {number.name: number.format for number in launch.numbers}
        function.prepare("".join(formats[name] for name in launch.args))
        return function

    def _launching(
        self, function: Any, launch: Launch, values: Mapping[str, float], stream: Any
    ) -> Callable[[], None]:
        known = {**values, "launch": launch.number}
        known |= {number.name: number.value for number in launch.numbers}
        return functools.partial(
            function.prepared_async_call,
            launch.grid_shape,
            (*launch.block_shape, 1),
            stream,
            *(known[name] for name in launch.args),
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


class Call:
    """One softmax call on guarded buffers of its own.

    Made and used while the GPU's context is active. `x` is of plan.rows x plan.cols. With
    `is_bare` the buffers have neither guards nor poison.
    Raises UsageError when the GPU lacks the memory, or a block the shared memory.
    """

    def __init__(
        self, gpu: Gpu, binary: Binary, plan: LaunchPlan, x: Matrix, is_bare: bool = False
    ) -> None:
        self.gpu, self.driver, self.plan = gpu, gpu.driver, plan
        self.stream = self.driver.Stream()
        self.kernels = Kernels(gpu, binary, plan)
        self.buffers = self._allocate(x, is_bare)
        addresses = {name: buffer.address for name, buffer in self.buffers.items()}
        self.steps = self.kernels.bind(addresses, self.stream)

    def _allocate(self, x: Matrix, is_bare: bool) -> dict[str, Buffer]:
        row_bytes = self.plan.cols * x.itemsize
        least = -(-max(row_bytes, MIN_GUARD_BYTES) // ALIGNMENT) * ALIGNMENT
        guard = 0 if is_bare else least
        y_bytes = x.size * self.plan.out_dtype.bytes
        sizes = {"x": x.nbytes, "y": y_bytes, "workspace": self.plan.workspace_bytes}
        sizes |= {each.name: each.nbytes for each in self.plan.buffers}
        try:
            buffers = {name: Buffer(self.driver, size, guard) for name, size in sizes.items()}
        except self.driver.MemoryError:
            raise no_memory(x, 2) from None
        self.driver.memcpy_htod(buffers["x"].address, np.ascontiguousarray(x).view(np.uint8))
        return buffers

    def run_step_by_step(self) -> None:
        """Run the call once, waiting for each launch, so that a fault is blamed on its kernel.

        Raises KernelFault for that, and when memory around the output or workspace has changed.
        """
        for name, issue in self.steps:
            with self.gpu.blaming(name):
                issue()
                self.stream.synchronize()
        for name in ("y", "workspace", *(each.name for each in self.plan.buffers)):
            if damage := self.buffers[name].damage():
                raise KernelFault(f"{self.kernels.names} wrote to {damage} {name}")

    def output(self) -> Matrix:
        """Return a copy of the output."""
        y = np.empty((self.plan.rows, self.plan.cols), numpy_dtype(self.plan.out_dtype))
        self.driver.memcpy_dtoh(y.view(np.uint8), self.buffers["y"].address)
        return y

    def free(self) -> None:
        """Give the device memory back; what lies in a lost context is gone already."""
        if not self.gpu.fault:
            for buffer in self.buffers.values():
                buffer.allocation.free()


def _float_bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def _describe(launch: Launch) -> str:
    return f"{launch.kernel} ({launch.grid} blocks of {launch.block} threads)"
