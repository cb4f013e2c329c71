"""Device memory as other libraries see it, and what they give back."""

from types import SimpleNamespace

import numpy as np
import pytest

from kgen.errors import UsageError
from kgen.gpu.memory import Buffer, MatrixBuffer, fetch
from tests.gpu.fake_cuda import FakeCuda

X = np.arange(15, dtype=np.float32).reshape(3, 5)


@pytest.fixture
def cuda():
    return FakeCuda()


def test_a_matrix_travels_and_is_what_it_says(cuda):
    matrix = MatrixBuffer(Buffer(cuda, X.nbytes, 256), X.shape)
    assert np.isnan(fetch(cuda, matrix)).all()
    matrix.fill(X.T.copy().T)  # which is not contiguous
    np.testing.assert_array_equal(fetch(cuda, matrix), X)
    assert matrix.__cuda_array_interface__ == {
        "shape": (3, 5),
        "typestr": "<f4",
        "data": (matrix.address, False),
        "version": 3,
    }
    matrix.poison()
    assert np.isnan(fetch(cuda, matrix)).all() and matrix.buffer.damage() == ""


def test_damage_is_the_nearest_changed_byte(cuda):
    buffer = Buffer(cuda, 60, 256)
    cuda.memset_d8(buffer.address + 60 + 9, 0, 3)
    assert buffer.damage() == "byte 10 behind the end of"
    cuda.memset_d8(buffer.address - 4, 0, 2)
    assert buffer.damage() == "byte 3 before the start of"


def test_without_a_guard_nothing_is_watched_or_filled(cuda):
    buffer = Buffer(cuda, 60, 0)
    cuda.memset_d8(buffer.address - 4, 1, 70)
    assert buffer.damage() == "" and not np.isnan(cuda.floats(buffer.address, 15)).any()


def array(cuda, **changes):
    interface = {"shape": (3, 5), "typestr": "<f4", "data": (256, False), "version": 3} | changes
    return SimpleNamespace(__cuda_array_interface__=interface)


def test_arrays_of_others_are_fetched(cuda):
    cuda.memcpy_htod(256, X)
    np.testing.assert_array_equal(fetch(cuda, array(cuda, strides=None)), X)


@pytest.mark.parametrize(
    "changes, words",
    [({"typestr": "<f8"}, "the result is <f8"), ({"strides": (4, 12)}, r"strides \(4, 12\)")],
)
def test_arrays_that_are_not_contiguous_float32_are_refused(cuda, changes, words):
    with pytest.raises(UsageError, match=words + ".*a contiguous array of float32 is needed"):
        fetch(cuda, array(cuda, **changes))
