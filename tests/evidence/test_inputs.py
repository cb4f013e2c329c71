import numpy as np
import pytest

from kgen.errors import UsageError
from kgen.evidence.inputs import ALL_INPUTS, make
from kgen.evidence.reference import reference64

FLOAT_MAX = np.finfo(np.float32).max
SHAPES = [(0, 0), (0, 5), (5, 0), (1, 1), (1, 2), (2, 1), (3, 3), (7, 1000)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rows, cols", SHAPES)
@pytest.mark.parametrize("name", ALL_INPUTS)
def test_any_shape_and_always_the_same(name, rows, cols):
    x = make(name, rows, cols)
    assert x.shape == (rows, cols) and x.dtype == np.float32 and x.flags.c_contiguous
    np.testing.assert_array_equal(x, make(name, rows, cols))


def test_the_inputs_of_the_studies_are_there():
    assert {"zeros", "special_last", "shifted_row", "uniform"} < set(ALL_INPUTS)


def test_uniform():
    x = make("uniform", 100, 1000)
    assert x.min() >= -10 and x.max() < 10
    assert abs(x.mean()) < 0.1 and x.std() == pytest.approx(20 / 12**0.5, rel=0.01)
    assert (x != make("uniform", 100, 1000, seed=43)).mean() > 0.99


def test_zeros_and_special_last():
    assert not make("zeros", 3, 5).any()
    x = make("special_last", 3, 5)
    assert not x[:, :-1].any() and (x[:, -1] == 100).all()


def test_shifted_row_leaves_the_softmax_of_uniform():
    x, uniform = make("shifted_row", 5, 50), make("uniform", 5, 50)
    assert (np.flatnonzero((x != uniform).any(axis=1)) == [2]).all() and x[2].min() > 900
    np.testing.assert_allclose(reference64(x), reference64(uniform), rtol=1e-3)


def test_outliers_are_few_of_both_signs():
    x = make("outliers", 100, 1000)
    assert (x == 1e4).mean() == pytest.approx(0.005, abs=0.001)
    assert (x == -1e4).mean() == pytest.approx(0.005, abs=0.001)
    assert not (x[1::2] == 1e4).any() and not (x[::2] == -1e4).any()


@pytest.mark.parametrize("maximum", [-200, -20000])
def test_maximum(maximum):
    x = make(f"max_minus_{-maximum}", 5, 50)
    assert (x.max(axis=1) == maximum).all() and x.min() < maximum - 15


def test_ascending():
    x = make("ascending", 2, 70000)
    assert (np.diff(x, axis=1) == 1 / 16).all()


def test_near_minus_1e7():
    x = make("near_minus_1e7", 3, 1000)
    assert np.abs(x + 1e7).max() <= 100 and len(np.unique(x)) > 150


def test_huge_spans_all_of_float32_and_stays_finite():
    x = make("huge", 6, 10000)
    assert x[0].min() < -0.99 * FLOAT_MAX and x[0].max() > 0.99 * FLOAT_MAX
    assert (x[[1, 4]] == FLOAT_MAX).all() and (x[[2, 5]] == -FLOAT_MAX).all()
    assert np.isfinite(x).all()


@pytest.mark.parametrize("name, test", [("with_nan", np.isnan), ("with_plus_inf", np.isposinf)])
def test_special_values_in_even_rows(name, test):
    x = make(name, 5, 50)
    assert test(x).sum(axis=1).tolist() == [1, 0, 1, 0, 1]
    assert np.isnan(reference64(x)).all(axis=1).tolist() == [True, False, True, False, True]


def test_minus_inf():
    x = make("with_minus_inf", 9, 1000)
    assert np.isneginf(x[:, 0]).all() and x[0, 1:3].tolist() == [0, 1]
    assert 0.1 < np.isneginf(x).mean() < 0.15
    assert np.isfinite(reference64(x)).all()
    x = make("all_minus_inf", 5, 50)
    assert np.isneginf(x).all(axis=1).tolist() == [False, False, True, False, False]


def test_unknown_name_and_negative_size():
    with pytest.raises(UsageError, match=r"'unifrom'.*'uniform'"):
        make("unifrom", 2, 2)
    with pytest.raises(UsageError, match="-1 rows"):
        make("uniform", -1, 2)
