"""Kernels of every type are right, and what is not the rounding of the right number is not."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from kgen.evidence.check import check, mixed_rows
from kgen.evidence.inputs import ALL_INPUTS, make
from kgen.evidence.reference import criterion, criterion_of, judge, reference64
from kgen.execute import run
from kgen.numpy_types import finfo, numpy_dtype, rounded
from kgen.specs.declared import chosen
from kgen.specs.rules import problems_for
from kgen.specs.variants import checked
from kgen.specs.versions import VERSIONS

TYPES = (
    *("dtype=float16", "dtype=bfloat16", "dtype=float64"),
    *("dtype=float16,out_dtype=float32", "out_dtype=bfloat16", "dtype=bfloat16,out_dtype=float16"),
)
# Each version with one type, and then with another one.
IN_TURN = [f"{name}:{of}" for name, of in zip(VERSIONS, itertools.cycle(TYPES), strict=False)]
OTHERS = [
    "v7:dtype=float16,vec=2",
    "v3:dtype=float16,vec=8",
    "v8:dtype=bfloat16,out_dtype=float32,vec=8",
    "v11:dtype=float16,cache=inputs_shared_async,unaligned=scalar_row,threads=64",
    "v12:dtype=float16,row_io=chunk_bulk",
    "v13:dtype=float64,row_split=cluster",
    "v13:dtype=bfloat16,next_row=bulk,grid=16,threads=64",
    "v14:dtype=float64,blocks_per_row=2",
    "t1:dtype=float64",
    "v1:dtype=bfloat16,cache=exps_output",
    "v7:dtype=float16,loads=streaming,stores=streaming",
    "v5:dtype=float16,op=log_softmax",
]
NARROW = ("float16", "bfloat16")


@pytest.mark.usefixtures("cxx")
@pytest.mark.parametrize("variant", [*IN_TURN, *OTHERS])
def test_every_version_is_right_in_some_type(variant: str) -> None:
    spec = checked(variant)
    shapes = [shape for shape in ((45, 257), (3, 1027), (5, 33)) if not problems_for(spec, *shape)]
    observed = not spec.is_host
    rows = check(spec, shapes=shapes[:2], memory=observed, races=observed)
    assert [row.reason for row in rows if not row.ok] == []


@pytest.mark.usefixtures("cxx")
@pytest.mark.parametrize("word", NARROW)
@pytest.mark.parametrize("variant", ["k1", "v8:threads_per_row=2,vec=2"])
def test_every_number_may_be_the_special_element(variant: str, word: str) -> None:
    spec = checked(f"{variant}{',' if ':' in variant else ':'}dtype={word}")
    x = np.zeros((2**16, 3), numpy_dtype(word))
    x[:, 0] = np.arange(2**16, dtype=np.uint16).view(numpy_dtype(word))
    x[:, 1] = 1
    verdict = judge(run(spec, x), x, criterion(spec, 3))
    assert verdict.ok, verdict.reason


@pytest.mark.parametrize("word", NARROW)
def test_the_rounding_of_the_right_number_is_right(word: str) -> None:
    element: Any = chosen("dtype", word)
    x = mixed_rows(ALL_INPUTS, 2 * len(ALL_INPUTS), 300, element)
    asked = criterion_of(element, 32)
    right = reference64(x)
    assert judge(rounded(right, word), x, asked).ok
    off = right.copy()
    off[0, 7] *= 1 + 1.5 * float(finfo(word).eps)
    assert f"beyond the rounding to {word}" in judge(rounded(off, word), x, asked).reason


@pytest.mark.parametrize("word", NARROW)
def test_numbers_that_are_cut_off_are_wrong(word: str) -> None:
    element: Any = chosen("dtype", word)
    x = make("uniform", 5, 700, element=element)
    right = reference64(x)
    cut = rounded(right, word)
    too_large = cut.astype(np.float64) > right
    cut.view(np.uint16)[too_large] -= 1
    assert not judge(cut, x, criterion_of(element, 32)).ok


def test_doubles_are_judged_as_doubles() -> None:
    element: Any = chosen("dtype", "float64")
    x = make("uniform", 5, 700, element=element)
    right = reference64(x)
    assert judge(right, x, criterion_of(element, 32)).ok
    assert not judge(right.astype(np.float32).astype(np.float64), x, criterion_of(element, 32)).ok


def test_what_a_type_cannot_hold_is_infinite() -> None:
    element: Any = chosen("dtype", "float16")
    log_softmax: Any = chosen("op", "log_softmax")
    x = np.array([[0, -40000], [30000, -35488], [30000, -35520]], np.float16)
    y = rounded(reference64(x, log_softmax), "float16")
    assert np.isinf(y).tolist() == [[False, False], [False, False], [False, True]]
    asked = criterion_of(element, 1, log_softmax)
    assert judge(y, x, asked).ok
    y[0, 1] = -np.inf
    assert not judge(y, x, asked).ok


@pytest.mark.parametrize("word", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", ALL_INPUTS)
def test_inputs_are_of_the_type_and_no_more_infinite_than_they_say(name: str, word: str) -> None:
    element: Any = chosen("dtype", word)
    x = make(name, 9, 130, element=element)
    assert x.dtype == numpy_dtype(word)
    assert np.isinf(x.astype(np.float64)).any() == ("inf" in name)
