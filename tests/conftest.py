"""What tests need of the machine, and why they are skipped where it is not there."""

from __future__ import annotations

import pytest

from kgen import cpu
from kgen.errors import MissingTool
from kgen.toolchain import find_nvcc


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
