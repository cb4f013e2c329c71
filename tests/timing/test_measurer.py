"""What the worker verifies: inputs of the measured type, and copies that convert."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kgen.errors import UsageError
from kgen.evidence.inputs import Matrix
from kgen.numpy_types import numpy_dtype
from kgen.specs.choice import Element
from kgen.specs.types import Types, find_types
from kgen.store.measurement import Kind
from kgen.timing.bench import measure
from kgen.timing.candidates import Candidate
from kgen.timing.measurer import Measurer
from kgen.timing.protocol import Protocol
from tests.timing.fakes import COLS, PROVENANCE, ROWS, SIX_ROUNDS, FakeDevice, variant

MIXED = find_types("bfloat16", "float32")
TYPES = [find_types(), find_types("float16"), find_types("float64"), MIXED]


class Told(FakeDevice):
    """A device that knows what it was made for."""

    asked: list[object]

    def __init__(self, x: Matrix, protocol: Protocol, out_dtype: Element) -> None:
        super().__init__(x, protocol, out_dtype)
        Told.asked = [x.dtype, out_dtype]

    def run(self, candidate: Candidate, x: Matrix) -> Matrix:
        Told.asked.append(x.dtype)
        return super().run(candidate, x)


def prepared(name: str, kind: Kind, types: Types) -> str:
    measurer = Measurer(ROWS, COLS, SIX_ROUNDS, Told, types)
    return measurer.prepare(replace(variant(name, kind), types=types)).reason


@pytest.mark.parametrize("types", TYPES, ids=str)
def test_inputs_are_of_the_measured_type(types: Types) -> None:
    assert prepared("copy", Kind.COPY, types) == ""
    of_x = numpy_dtype(types.dtype)
    assert Told.asked == [of_x, types.out_dtype, of_x]


def test_what_writes_another_type_is_judged_in_that_type() -> None:
    assert prepared("right", Kind.VARIANT, MIXED) == ""
    assert "instead of" in prepared("wrong", Kind.VARIANT, MIXED)


@pytest.mark.parametrize("types", TYPES, ids=str)
def test_a_copy_of_another_type_is_the_input_converted(types: Types) -> None:
    assert prepared("copy_wrong", Kind.COPY, types) == "the copy differs from what it copies"


def test_candidates_of_different_types_are_not_measured_together() -> None:
    ours = [variant("a"), replace(variant("b"), types=MIXED)]
    with pytest.raises(UsageError, match="a of float32, b of bfloat16 to float32: what differs"):
        measure(ours, SIX_ROUNDS, PROVENANCE, open_device=FakeDevice)


def test_the_fake_writes_the_type_that_is_asked_for() -> None:
    x = np.ones((ROWS, COLS), numpy_dtype("bfloat16"))
    y = FakeDevice(x, SIX_ROUNDS, MIXED.out_dtype).run(replace(variant("a"), types=MIXED), x)
    assert y.dtype == np.float32
