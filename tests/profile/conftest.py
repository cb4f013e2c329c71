"""A GPU machine without a GPU: what stands in for the device and for the compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgen import gpu, toolchain
from kgen.gpu import DeviceInfo
from kgen.profile import ncu


@pytest.fixture
def no_ncu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without an ncu, but with the programs that scripts need."""
    for variable in ("KGEN_NCU", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    installed = tuple((tmp_path / place.name, pattern) for place, pattern in ncu._INSTALLED)
    monkeypatch.setattr(ncu, "_INSTALLED", installed)


@pytest.fixture
def pretended_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that is asked for its name only, and a compiler that refuses nothing."""
    info = DeviceInfo("NVIDIA H200", "sm_90", 132, 60 << 20, 140 << 30, "580 (CUDA 13.0)")
    monkeypatch.setattr(gpu, "device_info", lambda: info)
    monkeypatch.setattr(toolchain, "compile_cubin", lambda source, arch: None)
