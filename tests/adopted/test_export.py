"""The exported script, run with a PyCUDA that records launches and computes with NumPy."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kgen.adopted.export import export_adopted
from kgen.evidence.reference import reference64
from tests.adopted.files import adopted


class FakePycuda:
    """Addresses are numbers of arrays; the kernel called `last` writes the softmax."""

    def __init__(self, last: str, cols: int) -> None:
        self.last, self.cols = last, cols
        self.memory: list[np.ndarray] = []
        self.launches: list[tuple[Any, ...]] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        driver, compiler = ModuleType("pycuda.driver"), ModuleType("pycuda.compiler")
        context = SimpleNamespace(pop=lambda: None)
        vars(driver).update(
            init=lambda: None,
            Device=lambda number: SimpleNamespace(make_context=lambda: context),
            to_device=lambda x: self.kept(x.copy().reshape(-1)),
            mem_alloc=lambda nbytes: self.kept(np.zeros(nbytes // 4, np.float32)),
            memset_d8=lambda at, value, nbytes: self.memory[at].view(np.uint8).fill(value),
            memset_d32=lambda at, bits, count: self.memory[at].view(np.uint32).fill(bits),
            memcpy_dtod=lambda to, at, nbytes: self.memory[to].__setitem__(..., self.memory[at]),
            from_device_like=lambda at, x: self.memory[at].reshape(x.shape).copy(),
            Event=lambda: SimpleNamespace(
                record=lambda: None, synchronize=lambda: None, time_till=lambda end: 5.0
            ),
        )
        function = SimpleNamespace(get_function=lambda name: FakeKernel(self, name))
        vars(compiler).update(SourceModule=lambda text, **options: function)
        package = ModuleType("pycuda")
        for module in (package, driver, compiler):
            monkeypatch.setitem(sys.modules, module.__name__, module)
        vars(package).update(driver=driver, compiler=compiler)

    def kept(self, array: np.ndarray) -> int:
        self.memory.append(array)
        return len(self.memory) - 1


class FakeKernel:
    def __init__(self, gpu: FakePycuda, name: str) -> None:
        self.gpu, self.name = gpu, name

    def prepare(self, formats: str) -> None:
        self.formats = formats

    def prepared_call(self, grid: Any, block: Any, *values: Any, shared_size: int) -> None:
        assert len(values) == len(self.formats)
        numbers = [v for letter, v in zip(self.formats, values, strict=True) if letter != "P"]
        self.gpu.launches.append((self.name, grid, block, shared_size, numbers))
        if self.name == self.gpu.last:
            x, y = self.gpu.memory[0], self.gpu.memory[1]
            y[:] = reference64(x.reshape(-1, self.gpu.cols)).reshape(-1)


@pytest.mark.parametrize(
    ("name", "rows", "cols"),
    [("three_kernels", 5, 300), ("warp_rows", 6, 33), ("in_place", 3, 64), ("vector_grid", 1, 600)],
)
def test_it_launches_what_kgen_launches(
    name: str, rows: int, cols: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = adopted(name)
    launches = source.contract.plan(rows, cols).launches  # type: ignore[union-attr]
    _, script = export_adopted(source, tmp_path)
    gpu = FakePycuda(launches[-1].kernel, cols)
    gpu.install(monkeypatch)
    monkeypatch.setattr(sys, "argv", [script.name, "--rows", str(rows), "--cols", str(cols)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    assert ended.value.code == 0
    assert gpu.launches[: len(launches)] == [
        (
            one.kernel,
            one.grid_shape,
            (*one.block_shape, 1),
            one.shared_bytes,
            [number.value for number in one.numbers],
        )
        for one in launches
    ]


def test_sizes_that_it_does_not_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, script = export_adopted(adopted("float4_rows"), tmp_path)
    FakePycuda("", 33).install(monkeypatch)
    monkeypatch.setattr(sys, "argv", [script.name, "--cols", "33"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    assert ended.value.code == 2
