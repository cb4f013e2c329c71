"""How a benchmark verifies somebody's kernel: right on ordinary rows, the others are told."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from kgen.evidence.inputs import Matrix
from kgen.evidence.reference import reference64
from kgen.store.measurement import CPU, Kind, Provenance
from kgen.timing.candidates import Candidate, of_targets
from kgen.timing.measurer import Measurer
from kgen.timing.protocol import Protocol
from kgen.timing.summary import blank
from tests.adopted.files import adopted
from tests.timing.fakes import FakeTimed

ROWS, COLS = 28, 64


class Device:
    """Computes the softmax, and 2 where an element is beyond `most`."""

    def __init__(self, most: float) -> None:
        self.most = most

    def run(self, candidate: Candidate, x: Matrix) -> Matrix:
        y = reference64(x).astype(np.float32)
        y[~(np.abs(x).max(axis=1) <= self.most)] = 2
        return y

    def load(self, candidate: Candidate) -> FakeTimed:
        return FakeTimed(candidate, np.zeros((1, 1), np.float32))


@pytest.mark.parametrize(("most", "is_right"), [(1e6, True), (15000, False)])
def test_odd_rows_are_told_and_ordinary_ones_fail(most: float, is_right: bool) -> None:
    (candidate,) = of_targets([adopted("in_place")], ROWS, COLS)
    measurer = Measurer(ROWS, COLS, Protocol(), lambda x, protocol, out_dtype: Device(most))  # type: ignore[arg-type,return-value]
    measurer._load = lambda one: _Timed(measurer)  # type: ignore[method-assign,assignment]
    prepared = measurer.prepare(candidate)
    assert (prepared.reason == "") == is_right
    assert prepared.remark.startswith("wrong on rows of odd values") == is_right
    assert prepared.remark.endswith("a copy of the input is timed with it") == is_right


class _Timed:
    calls, remark, package = 1, "", ""

    def __init__(self, measurer: Measurer) -> None:
        self.measurer = measurer

    def outputs(self) -> list[Matrix]:
        return [reference64(self.measurer.timed_input.x).astype(np.float32)]


def test_a_candidate_travels_to_the_worker_and_claims_no_axes() -> None:
    (candidate,) = of_targets([adopted("three_kernels")], 4, 33)
    again = pickle.loads(pickle.dumps(candidate))
    assert again.plan == candidate.plan and again.is_adopted
    assert candidate.kind is Kind.FILE
    provenance = Provenance(run="r", measured_at="2026-01-02T03:04:05+00:00", device=CPU)
    assert blank(candidate, Protocol(), provenance).spec == ""


def test_sizes_that_it_does_not_take_are_a_refused_row() -> None:
    (candidate,) = of_targets([adopted("float4_rows")], 4, 33)
    assert "takes sizes of which cols % 4 == 0" in candidate.reason
