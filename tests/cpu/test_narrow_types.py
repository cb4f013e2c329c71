"""The executor's numbers of 16 bits convert as CUDA's do, to the bit: to nearest, ties to even."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kgen import cpu
from kgen.launch import Launch, LaunchPlan
from kgen.numpy_types import numpy_dtype, rounded
from kgen.sources.source import Source
from kgen.specs.declared import FLOAT32, chosen

pytestmark = pytest.mark.usefixtures("cxx")

NARROW = ("float16", "bfloat16")
# All numbers of 16 bits.
EVERY = np.arange(2**16, dtype=np.uint16).reshape(256, 256)


def converted(x: NDArray[Any], source: Any, target: Any, function: str) -> NDArray[Any]:
    """Return what a kernel makes of each element by a function of CUDA's."""
    includes = {of.includes for of in (source, target) if of.includes}
    text = "".join(f"#include <{header}>\n" for header in includes) + (
        f'extern "C" __global__ void convert(const {source.c_type}* x, {target.c_type}* y, int rows,'
        " int cols) {\n"
        "    const int c = threadIdx.x;\n"
        f"    y[blockIdx.x * cols + c] = {function}(x[blockIdx.x * cols + c]);\n}}\n"
    )
    spec: Any = SimpleNamespace(is_host=False, requires="")
    kernel = Source(spec, "convert", text, ("convert",), None)
    rows, cols = x.shape
    launch = Launch("convert", rows, cols, 0, ("x", "y", "rows", "cols"))
    plan = LaunchPlan(rows, cols, (launch,), dtype=source, out_dtype=target)
    return cpu.run(kernel, plan, x)


@pytest.mark.parametrize("word", NARROW)
def test_every_number_becomes_the_same_float(word: str) -> None:
    element: Any = chosen("dtype", word)
    x = EVERY.view(numpy_dtype(word))
    y = converted(x, element, FLOAT32, element.to_compute)
    np.testing.assert_array_equal(y, x.astype(np.float32))
    assert (np.signbit(y) == np.signbit(x.astype(np.float32)))[~np.isnan(y)].all()


def floats(word: str) -> NDArray[np.float32]:
    """Return every number of a type, what is half-way to the next one, and their neighbours."""
    x = EVERY.view(numpy_dtype(word)).astype(np.float32).reshape(-1)
    x = x[np.isfinite(x)]
    between = ((x[:-1].astype(np.float64) + x[1:]) / 2).astype(np.float32)
    near = np.concatenate([between, np.nextafter(between, np.inf), np.nextafter(between, -np.inf)])
    bits = np.random.default_rng(1).integers(0, 2**32, 2**16, dtype=np.uint32).view(np.float32)
    special = np.array([np.inf, -np.inf, np.nan, 65519.996, 65520.0, 3.3961776e38], np.float32)
    every = np.concatenate([x, near, bits, special]).astype(np.float32)
    return every[: len(every) // 256 * 256].reshape(-1, 256)


@pytest.mark.parametrize("word", NARROW)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_floats_are_rounded_to_nearest(word: str) -> None:
    element: Any = chosen("dtype", word)
    x = floats(word)
    y, wanted = converted(x, FLOAT32, element, element.from_compute), rounded(x, word)
    same = (y.view(np.uint16) == wanted.view(np.uint16)) | (np.isnan(x) & np.isnan(y))
    assert same.all(), x[~same][:5]


@pytest.mark.parametrize("word", NARROW)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_towards_zero_is_never_farther_from_it(word: str) -> None:
    element: Any = chosen("dtype", word)
    x = floats(word)
    x = x[np.isfinite(x).all(axis=1)]
    y = converted(x, FLOAT32, element, element.from_compute.replace("_rn", "_rz"))
    near, cut = rounded(x, word).astype(np.float64), y.astype(np.float64)
    assert (np.abs(cut) <= np.abs(x.astype(np.float64))).all()
    assert (cut == near)[np.abs(near) <= np.abs(x)].all()
