"""What lies around a run's matrices: numbers that are none in any type, right up to the elements."""

from __future__ import annotations

import numpy as np
import pytest

from kgen.cpu.buffers import OUTPUT, READ_ONLY_GUARD, WRITABLE_GUARD, Buffers
from kgen.numpy_types import numpy_dtype
from kgen.specs.declared import choices


@pytest.mark.parametrize("shift", [0, 2, 10])
@pytest.mark.parametrize("elements", [3, 4])
@pytest.mark.parametrize("beside", [-1, 0])
def test_an_element_beside_a_buffer_of_halves_is_missed(
    beside: int, elements: int, shift: int
) -> None:
    buffers = Buffers()
    region = buffers.add("y", 2 * elements, 0, shift, OUTPUT)
    with buffers:
        buffers.data(region)[:] = 0
        assert buffers.first_overwritten(region) is None
        byte = beside if beside < 0 else region.size
        buffers._bytes[region.offset + region.start + byte] = 0
        assert buffers.first_overwritten(region) == (-2 if beside < 0 else region.size)


@pytest.mark.parametrize("word", choices("dtype"))
@pytest.mark.parametrize("guard", [READ_ONLY_GUARD, WRITABLE_GUARD])
def test_guards_are_nan_in_every_type(guard: np.uint16, word: str) -> None:
    around = np.full(4, guard).view(numpy_dtype(word))
    assert np.isnan(around.astype(np.float64)).all()
