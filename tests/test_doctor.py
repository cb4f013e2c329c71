"""What the doctor finds on machines with and without the compilers, PyCUDA, a driver and GPUs."""

from __future__ import annotations

import ctypes
import importlib.metadata
import platform
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kgen import doctor
from kgen.doctor import ToolStatus, inspect_machine
from kgen.errors import MissingTool


class FakeDriver:
    """Stands in for libcuda.so.1 with two GPUs; `status` is what cuInit returns."""

    def __init__(self, status: int = 0) -> None:
        self.status = status

    def cuInit(self, flags: int) -> int:
        return self.status

    def cuGetErrorName(self, status: int, name: Any) -> int:
        name._obj.value = b"CUDA_ERROR_NO_DEVICE"
        return 0

    def cuDriverGetVersion(self, version: Any) -> int:
        version._obj.value = 12080
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = 2
        return 0

    def cuDeviceGetName(self, name: Any, length: int, device: int) -> int:
        name.value = f"NVIDIA H{device}00".encode()
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: int) -> int:
        value._obj.value = {75: 9 + device, 76: 3 * device}[attribute]
        return 0


def _use_driver(monkeypatch: pytest.MonkeyPatch, driver: FakeDriver) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: {"libcuda.so.1": driver}[name])


def _found() -> dict[str, ToolStatus]:
    return {finding.what: finding for finding in inspect_machine()}


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without anything but Python."""

    def missing(*arguments: object) -> Any:
        raise MissingTool("there is none")

    def no_library(name: str) -> Any:
        raise OSError(f"{name}: cannot open shared object file")

    def no_package(name: str) -> Any:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("kgen.cpu.compiler.find_cxx", missing)
    monkeypatch.setattr(doctor, "find_nvcc", missing)
    monkeypatch.setattr(doctor, "find_disassembler", missing)
    monkeypatch.setattr("kgen.profile.ncu.find_ncu", missing)
    monkeypatch.setattr(ctypes, "CDLL", no_library)
    monkeypatch.setattr(importlib.metadata, "distribution", no_package)


def test_bare_machine_has_python_alone() -> None:
    found = _found()
    python = found.pop("Python")
    assert python.found and python.version == platform.python_version()
    programs, packages = ["C++ compiler", "nvcc", "nvdisasm", "ncu"], list(doctor.GPU_PACKAGES)
    assert list(found) == [*programs, *packages, "GPU driver"]
    for finding in found.values():
        assert not finding.found and finding.version == "" and finding.where
        assert finding.needed_for and finding.install
    assert found["nvcc"].where == "there is none"
    assert ".[nvcc]" in found["nvcc"].install and ".[gpu]" in found["pycuda"].install
    assert "libcuda.so.1: cannot open" in found["GPU driver"].where


def test_compilers_that_are_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def tool(name: str, version: str) -> SimpleNamespace:
        return SimpleNamespace(path=Path("/bin", name), version=version, found_by="PATH")

    monkeypatch.setattr("kgen.cpu.compiler.find_cxx", lambda: Path("/bin/g++"))
    monkeypatch.setattr(
        "kgen.cpu.compiler.describe_cxx",
        {Path("/bin/g++"): "g++ (Debian 12.1.9-14+deb12u1) 12.2.0\nCopyright 2022"}.__getitem__,
    )
    monkeypatch.setattr(doctor, "find_nvcc", lambda: tool("nvcc", "13.0.88"))
    monkeypatch.setattr(doctor, "find_disassembler", lambda: tool("nvdisasm", "13.2.86"))
    found = _found()
    assert [found[what].version for what in ("C++ compiler", "nvcc", "nvdisasm")] == [
        "12.2.0",
        "13.0.88",
        "13.2.86",
    ]
    assert found["C++ compiler"].where == "/bin/g++"
    assert found["nvcc"].where == "/bin/nvcc (PATH)" and found["nvcc"].found


def test_pycuda_is_found_without_importing_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Importing PyCUDA raises where there is no driver."""
    installed = SimpleNamespace(version="2025.1", locate_file=lambda name: tmp_path / name)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: installed)
    (tmp_path / "pycuda").mkdir()
    (tmp_path / "pycuda" / "__init__.py").write_text("raise ImportError('libcuda.so.1')")
    monkeypatch.syspath_prepend(str(tmp_path))
    pycuda = _found()["pycuda"]
    assert pycuda.found and pycuda.version == "2025.1" and pycuda.where == str(tmp_path)


def test_driver_and_its_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    _use_driver(monkeypatch, FakeDriver())
    found = _found()
    assert found["GPU driver"].found and found["GPU driver"].version == "CUDA 12.8"
    gpus = [(found[what].version, found[what].where) for what in ("GPU 0", "GPU 1")]
    assert gpus == [("sm_90", "NVIDIA H000"), ("sm_103", "NVIDIA H100")]


def test_driver_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    _use_driver(monkeypatch, FakeDriver(status=100))
    found = _found()
    assert found["GPU driver"].found and not found["GPU"].found
    assert found["GPU"].where == "cuInit returned 100 (CUDA_ERROR_NO_DEVICE)"
    assert "GPU 0" not in found
