"""Kernels of every type are right on the GPU."""

from __future__ import annotations

import pytest

from kgen.evidence.check import mixed_rows
from kgen.evidence.inputs import ALL_INPUTS
from kgen.evidence.reference import criterion, judge
from kgen.execute import run
from kgen.specs.rules import problems_for
from kgen.specs.variants import checked
from kgen.specs.versions import VERSIONS

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("device")]

TYPES = (
    *("dtype=float16", "dtype=bfloat16", "dtype=float64"),
    *("dtype=float16,out_dtype=float32", "out_dtype=bfloat16"),
)
NAMES = [name for name, version in VERSIONS.items() if not version.spec.is_host]


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_every_version_is_right_in_every_type(name: str, types: str) -> None:
    spec = checked(f"{name}:{types}")
    shapes = ((97, 257), (3, 1000), (66, 64))
    rows, cols = next(shape for shape in shapes if not problems_for(spec, *shape))
    x = mixed_rows(ALL_INPUTS, rows, cols, spec.dtype)
    verdict = judge(run(spec, x, on="gpu"), x, criterion(spec, cols))
    assert verdict.ok, verdict.reason
