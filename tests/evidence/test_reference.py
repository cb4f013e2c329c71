import warnings

import numpy as np
import pytest

from kgen.evidence import inputs, reference
from kgen.evidence.reference import Criterion, judge, reference64, row_sum_tolerance, tolerance

NAN, INF = np.nan, np.inf


def rounded_softmax(x):
    return reference64(x).astype(np.float32)


def serial_float32_softmax(x):
    """The softmax as one thread a row computes it, a float32 addition for every element."""
    with np.errstate(all="ignore"):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / np.add.accumulate(e, axis=1, dtype=np.float32)[:, -1:]


class TestSoftmax64:
    def test_values(self):
        x = np.array([[0, np.log(3)], [1000, 1000]])
        np.testing.assert_allclose(reference64(x), [[0.25, 0.75], [0.5, 0.5]], rtol=1e-12)

    @pytest.mark.parametrize("row", [[0, NAN, 1], [0, INF, 1], [INF, -INF, NAN], [-INF] * 3])
    def test_special_rows_are_nan_and_leave_others_alone(self, row):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            y = reference64(np.array([row, [5, 5, 5]], np.float32))
        assert np.isnan(y[0]).all()
        np.testing.assert_allclose(y[1], 1 / 3)

    def test_minus_inf_counts_nothing(self):
        np.testing.assert_array_equal(reference64(np.array([[-INF, 2, 2]])), [[0, 0.5, 0.5]])

    @pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0)])
    def test_empty(self, shape):
        assert reference64(np.zeros(shape, np.float32)).shape == shape

    def test_leaves_its_input_alone_and_wants_two_dimensions(self):
        x = np.array([[1.0, 2.0]])
        reference64(x)
        assert x.tolist() == [[1.0, 2.0]]
        with pytest.raises(ValueError):
            reference64(np.zeros((2, 3, 4)))


class TestTolerance:
    def test_is_a_random_walk_and_more_only_for_long_sums(self):
        assert tolerance(0) == 2e-6
        assert tolerance(1024) == pytest.approx(2e-6 + 6e-8 * 32, rel=1e-12)
        assert tolerance(65536) == pytest.approx(2e-6 + 6e-8 * 256 + 6.45e-5, rel=1e-3)

    def test_of_the_row_sum_adds_the_exponentials_errors(self):
        assert row_sum_tolerance(8, 1) == tolerance(8)
        assert row_sum_tolerance(8, 4096) == pytest.approx(tolerance(8) + 1.49e-6, rel=1e-2)

    @pytest.mark.parametrize("name", inputs.ALL_INPUTS)
    @pytest.mark.parametrize("cols", [257, 4096, 65536])
    def test_admits_a_correct_float32_loop(self, name, cols):
        x = inputs.make(name, 6, cols)
        assert judge(serial_float32_softmax(x), x, Criterion(cols)).reason == ""


class TestJudge:
    def test_accepts_the_rounded_reference(self):
        x = inputs.make("uniform", 5, 33)
        verdict = judge(rounded_softmax(x), x, Criterion(8))
        assert verdict.ok and verdict.reason == ""
        assert 0 < verdict.max_rel_error < 1e-7
        assert 0 < verdict.max_abs_error < verdict.max_rel_error
        assert 0 < verdict.row_sum_error < 1e-6

    def test_names_the_element_that_is_off(self):
        x = inputs.make("uniform", 5, 33)
        y = rounded_softmax(x)
        y[3, 7] += 1e-4
        verdict = judge(y, x, Criterion(8))
        assert not verdict.ok
        assert verdict.worst[:2] == (3, 7)
        assert verdict.worst.got == y[3, 7]
        assert verdict.worst.expected == reference64(x)[3, 7]
        assert verdict.max_abs_error == pytest.approx(1e-4, rel=1e-3)
        assert "row 3, column 7" in verdict.reason and f"{y[3, 7]:.9g}" in verdict.reason

    def test_rejects_zeros_for_a_long_row(self):
        x = inputs.make("zeros", 2, 1 << 21)
        verdict = judge(np.zeros_like(x), x, Criterion(2048))
        assert not verdict.ok and verdict.max_abs_error < 1e-6
        assert verdict.max_rel_error == 1

    def test_errors_count_relative_to_their_own_row(self):
        x = np.zeros((2, 1000), np.float32)
        x[0, 0] = 100
        y = rounded_softmax(x)
        y[0, 5] += 1e-6
        assert judge(y, x, Criterion(8)).ok
        y[1, 5] += 1e-6
        assert judge(y, x, Criterion(8)).worst[:2] == (1, 5)

    @pytest.mark.parametrize("value", [NAN, INF, -INF])
    def test_finite_reference_wants_finite_values(self, value):
        x = inputs.make("uniform", 3, 5)
        y = rounded_softmax(x)
        y[1, 4] = value
        verdict = judge(y, x, Criterion(1))
        assert not verdict.ok and verdict.worst[:2] == (1, 4)
        assert verdict.max_abs_error == verdict.max_rel_error == INF
        assert "row 1, column 4" in verdict.reason
        assert ("not written or NaN" in verdict.reason) == bool(np.isnan(value))

    @pytest.mark.parametrize("name", ["with_nan", "with_plus_inf", "all_minus_inf"])
    def test_nan_is_wanted_exactly_where_the_reference_has_it(self, name):
        x = inputs.make(name, 4, 9)
        y = rounded_softmax(x)
        assert judge(y, x, Criterion(9)).ok
        row = int(np.flatnonzero(np.isnan(y[:, 0]))[0])
        y[row, 6] = 0
        verdict = judge(y, x, Criterion(9))
        assert not verdict.ok and verdict.worst[:2] == (row, 6)
        assert "make it NaN" in verdict.reason

    def test_row_sum_finds_many_errors_that_each_are_small(self):
        x = np.zeros((3, 4096), np.float32)
        x[:, 0] = 10  # the others are 2200 times smaller than the row's maximum
        y = rounded_softmax(x)
        y[2, 1:] *= np.float32(1.0005)
        verdict = judge(y, x, Criterion(16))
        assert verdict.max_rel_error < tolerance(16)
        assert not verdict.ok and "row 2 sums to 1 only within" in verdict.reason

    def test_judges_in_chunks(self, monkeypatch):
        x = inputs.make("with_nan", 10, 7)
        y = rounded_softmax(x)
        whole = judge(y, x, Criterion(7))
        monkeypatch.setattr(reference, "CHUNK_ELEMENTS", 21)
        assert judge(y, x, Criterion(7)) == whole
        y[9, 6] = 2
        assert judge(y, x, Criterion(7)).worst[:3] == (9, 6, 2)
        y[5, 1] = NAN
        assert judge(y, x, Criterion(7)).worst[:2] == (5, 1)

    def test_chunks_bound_the_memory(self, monkeypatch):
        x = inputs.make("zeros", 64, 1 << 17)
        y, seen, real = rounded_softmax(x), [], reference.reference64

        def recorded(x, op):
            seen.append(x.size)
            return real(x, op)

        monkeypatch.setattr(reference, "reference64", recorded)
        assert judge(y, x, Criterion(512)).ok
        assert max(seen) <= reference.CHUNK_ELEMENTS and sum(seen) == x.size

    @pytest.mark.parametrize("shape", [(0, 4), (4, 0)])
    def test_empty_is_right_and_another_shape_is_not(self, shape):
        empty = np.zeros(shape, np.float32)
        assert judge(empty, empty, Criterion(0)).ok
        assert "(4, 4)" in judge(np.zeros((4, 4), np.float32), empty, Criterion(0)).reason
