"""A PyCUDA that records what a script asks of it and computes the softmax with numpy.

It stands for a GPU with one loaded file, whose launches it knows from kgen's plan: the last kernel
of the plan writes the output of `op`. Settings make it fail the way the real one does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kgen.evidence.reference import reference64
from kgen.launch import Launch, LaunchPlan
from kgen.numpy_types import numpy_dtype
from kgen.specs.choice import Element, Op
from tests.gpu.fake_cuda import FunctionAttribute


class Error(Exception):
    """pycuda.driver.Error."""


class OutOfMemory(Error, MemoryError):
    """pycuda.driver.MemoryError, which is Python's as well."""


class CompileError(Error):
    """pycuda.driver.CompileError."""


class Allocation(int):
    """Device memory, as PyCUDA returns it: usable as an address."""


class FakePycuda:
    """`plan` says what is to be launched; `damage` may spoil the output (old content, new)."""

    def __init__(self, plan: LaunchPlan, op: Op) -> None:
        self.plan, self.op = plan, op
        self.damage: Callable[[NDArray[Any], NDArray[Any]], None] = lambda old, new: None
        self.errors: dict[str, Exception] = {}
        self.elapsed_ms = 5000.0
        self.shared_limit = 232_448
        self.memory: dict[int, NDArray[np.uint8]] = {}
        self.launches: list[Launch] = []
        self.launches_at_events: list[int] = []
        self.compiled: list[tuple[str, dict[str, Any]]] = []
        self.dynamic_allowed: list[int] = []
        self.large_clusters: list[int] = []
        self.contexts = 0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make it what `import pycuda` finds."""
        package, driver, compiler = map(ModuleType, ("pycuda", "pycuda.driver", "pycuda.compiler"))
        vars(driver).update(
            Error=Error,
            CompileError=CompileError,
            init=lambda: self.maybe_fail("init"),
            Device=self.device,
            Context=SimpleNamespace(get_device=lambda: self.device(0)),
            Event=lambda: FakeEvent(self),
            mem_alloc=self.mem_alloc,
            memcpy_htod=self.memcpy_htod,
            memcpy_dtoh=self.memcpy_dtoh,
            memset_d8=self.memset,
            memset_d8_async=self.memset,
            device_attribute=SimpleNamespace(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN="optin"),
            function_attribute=FunctionAttribute,
        )
        vars(compiler).update(SourceModule=self.source_module)
        vars(package).update(driver=driver, compiler=compiler)
        for module in (package, driver, compiler):
            monkeypatch.setitem(sys.modules, module.__name__, module)

    def maybe_fail(self, where: str) -> None:
        if where in self.errors:
            raise self.errors[where]

    def device(self, number: int) -> SimpleNamespace:
        assert number == 0
        return SimpleNamespace(
            make_context=self.make_context,
            compute_capability=lambda: (9, 0),
            name=lambda: "Fake GPU",
            get_attribute={"optin": self.shared_limit}.__getitem__,
        )

    def make_context(self) -> SimpleNamespace:
        self.maybe_fail("make_context")
        self.contexts += 1
        return SimpleNamespace(pop=self.pop)

    def pop(self) -> None:
        self.contexts -= 1
        self.maybe_fail("pop")

    def mem_alloc(self, nbytes: int) -> Allocation:
        self.maybe_fail("mem_alloc")
        address = Allocation(0x10000 * (len(self.memory) + 1))
        self.memory[address] = np.zeros(nbytes, np.uint8)
        return address

    def memcpy_htod(self, address: int, array: NDArray[Any]) -> None:
        self.memory[address][:] = array.reshape(-1).view(np.uint8)

    def memcpy_dtoh(self, array: NDArray[Any], address: int) -> None:
        array[...] = self.memory[address].view(array.dtype).reshape(array.shape)

    def memset(self, address: int, value: int, nbytes: int) -> None:
        assert nbytes == self.memory[address].size
        self.memory[address][:] = value

    def source_module(self, source: str, **options: Any) -> SimpleNamespace:
        self.maybe_fail("compile")
        self.compiled.append((source, options))
        return SimpleNamespace(get_function=lambda name: FakeKernel(self, name))

    def matrix(self, address: int, element: Element) -> NDArray[Any]:
        shape = self.plan.rows, self.plan.cols
        return self.memory[address].view(numpy_dtype(element)).reshape(shape)

    @property
    def x(self) -> NDArray[Any]:
        """The input, which is allocated first."""
        return self.matrix(min(self.memory), self.plan.dtype)


class FakeEvent:
    """A CUDA event, which notes how many launches came before it."""

    def __init__(self, gpu: FakePycuda) -> None:
        self.gpu = gpu

    def record(self) -> None:
        self.gpu.launches_at_events.append(len(self.gpu.launches))

    def synchronize(self) -> None:
        pass

    def time_till(self, end: FakeEvent) -> float:
        return self.gpu.elapsed_ms


class FakeKernel:
    """A kernel of the plan."""

    shared_size_bytes = 272

    def __init__(self, gpu: FakePycuda, name: str) -> None:
        names = [launch.kernel for launch in gpu.plan.launches]
        self.gpu, self.planned = gpu, gpu.plan.launches[names.index(name)]

    def set_attribute(self, attribute: FunctionAttribute, value: int) -> None:
        if attribute == FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES:
            self.gpu.dynamic_allowed.append(value)
        else:
            self.gpu.large_clusters.append(value)

    def prepare(self, formats: str) -> None:
        letters = {"rows": "i", "cols": "i", "launch": "I"}
        assert formats == "".join(letters.get(name, "P") for name in self.planned.args)

    def prepared_call(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        *values: int,
        shared_size: int = 0,
    ) -> None:
        self.gpu.maybe_fail("launch")
        assert grid[1:] == (1,) and block[1:] == (1, 1)
        called = replace(self.planned, grid=grid[0], block=block[0], shared_bytes=shared_size)
        self.gpu.launches.append(called)
        if not self.gpu.launches_at_events:  # what is timed is not looked at
            self.compute(dict(zip(self.planned.args, values, strict=True)))

    def compute(self, given: dict[str, int]) -> None:
        plan, memory = self.gpu.plan, self.gpu.memory
        sizes = {"rows": plan.rows, "cols": plan.cols}
        assert {name: given[name] for name in sizes if name in given} == {
            name: size for name, size in sizes.items() if name in given
        }
        if "workspace" in given and self.planned == plan.launches[0]:
            assert memory[given["workspace"]].size == plan.workspace_bytes
            assert not memory[given["workspace"]].any(), "the workspace was not cleared"
        if self.planned == plan.launches[-1]:
            y, new = self.gpu.matrix(given["y"], plan.out_dtype), reference64(
                self.gpu.x, self.gpu.op
            )
            self.gpu.damage(y, new)
            y[:] = new
        if "workspace" in given and not plan.keeps_workspace:
            memory[given["workspace"]][:] = 1
