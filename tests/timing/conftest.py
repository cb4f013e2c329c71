"""Compilers where they are installed, and stand-ins where a test is about something else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kgen import cpu
from kgen.errors import MissingTool
from kgen.toolchain import find_nvcc
from tests.timing.fakes import compile_fakes


@pytest.fixture
def cxx() -> None:
    """Skip the test where no C++ compiler is installed."""
    try:
        cpu.find_cxx()
    except MissingTool as missing:
        pytest.skip(str(missing))


@pytest.fixture
def nvcc() -> None:
    """Skip the test where no nvcc is installed."""
    try:
        find_nvcc()
    except MissingTool as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def fake_nvcc() -> Iterator[None]:
    """Have a benchmark compile with a stand-in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kgen.timing.candidates.compile_many", compile_fakes)
        yield
