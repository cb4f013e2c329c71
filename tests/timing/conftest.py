"""Compilers where they are installed, and stand-ins where a test is about something else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.timing.fakes import compile_fakes


@pytest.fixture(scope="module")
def fake_nvcc() -> Iterator[None]:
    """Have a benchmark compile with a stand-in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kgen.timing.candidates.compile_many", compile_fakes)
        yield
