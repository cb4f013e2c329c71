"""What matrices take, and that what is too much is not tried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgen.errors import MissingTool
from kgen.evidence import memory
from kgen.evidence.check import mixed_rows
from kgen.evidence.inputs import ALL_INPUTS, make
from kgen.evidence.memory import machine_bytes, needed_bytes
from kgen.timing import on_cpu
from tests.timing.fakes import peer


def test_bytes_cover_what_is_held() -> None:
    for rows, cols in ((4000, 4000), (1, 10**7), (10**7, 1)):
        assert needed_bytes(rows, cols) >= 4 * 4 * rows * cols
    assert machine_bytes() > 1 << 28


@pytest.mark.parametrize("shape", [(30, 100), (1, 1000), (100, 1)])
def test_too_much_is_not_tried(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "machine_bytes", lambda: needed_bytes(*shape))
    assert make("uniform", *shape).shape == mixed_rows(ALL_INPUTS, *shape).shape == shape
    more = (shape[0], shape[1] + 1)
    for too_much in (lambda: make("uniform", *more), lambda: mixed_rows(ALL_INPUTS, *more)):
        with pytest.raises(MissingTool, match=f"{more[0]} x {more[1]} takes about .* of memory"):
            too_much()


@pytest.mark.parametrize(("shapes_that_fit", "at_once"), [(0.5, 1), (1, 1), (4, 2), (100, 8)])
def test_so_many_are_verified_at_once(
    shapes_that_fit: float, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    there = int(shapes_that_fit * needed_bytes(30, 100))
    monkeypatch.setattr(on_cpu, "machine_bytes", lambda: there)
    assert on_cpu._at_once([replace(peer("a"), rows=30, cols=100)]) == at_once
