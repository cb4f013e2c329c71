"""What axes were worth, on times that are products of known factors."""

import itertools

import pytest

from kgen.store.measurement import Kind, Outcome
from kgen.sweep.effects import effects
from tests.sweep.made import made, modelled

THREADS = {128: 1.0, 256: 1.25, 512: 2.0}
EXP = {"expf": 1.0, "exp2": 0.8}
NORMALIZE = {"divide": 1.5, "reciprocal": 1.0}


def product(threads, exp, normalize):
    us = 10 * THREADS[threads] * EXP[exp] * NORMALIZE[normalize]
    return made(f"v5:threads={threads},exp={exp},normalize={normalize}", us)


def by_axis(rows):
    return {effect.axis: effect for effect in effects(rows)}


def ratios(effect):
    return {value.value: value.ratio for value in effect.values}


def test_effects_of_a_balanced_sweep_are_its_factors():
    found = by_axis([product(*setting) for setting in itertools.product(THREADS, EXP, NORMALIZE)])
    assert list(found) == ["threads", "exp", "normalize"]
    assert ratios(found["threads"]) == pytest.approx({"128": 1, "256": 1.25, "512": 2})
    assert ratios(found["exp"]) == pytest.approx({"exp2": 1, "expf": 1.25})
    assert ratios(found["normalize"]) == pytest.approx({"reciprocal": 1, "divide": 1.5})
    assert [value.pairs for value in found["threads"].values] == [4, 4, 4]
    assert [value.value for value in found["threads"].values] == ["128", "256", "512"]


def test_an_unbalanced_sweep_does_not_lie():
    """512 threads were tried where everything else was fast: a plain mean would prefer them."""
    rows = [product(128, exp, normalize) for exp, normalize in itertools.product(EXP, NORMALIZE)]
    rows.append(product(512, "exp2", "reciprocal"))
    threads = by_axis(rows)["threads"]
    assert ratios(threads) == pytest.approx({"128": 1, "512": 2})
    assert [value.pairs for value in threads.values] == [4, 1]


def test_a_range_tells_where_other_axes_decide():
    rows = [made("v5", 10), made("v5:exp=exp2", 20), made("v6", 10), made("v6:exp=exp2", 10)]
    exp2 = by_axis(rows)["exp"].values[1]
    assert (exp2.value, exp2.pairs) == ("exp2", 2)
    assert (exp2.ratio, exp2.least, exp2.most) == pytest.approx((2**0.5, 1, 2))


def test_more_threads_with_fewer_items_are_one_change():
    found = by_axis([made("v7:threads=128", 10), made("v7:threads=256", 12)])
    assert list(found) == ["threads"]
    assert ratios(found["threads"]) == pytest.approx({"128": 1, "256": 1.2})


def test_an_axis_that_never_changes_alone_says_what_moves_with_it():
    rows = [made("v5", 12), made("v6_double", 10), made("v6", 11), made("v5:threads=128", 13)]
    found = by_axis(rows)
    assert found["vec"].moves_with == "vec_scans"
    assert ratios(found["vec"]) == pytest.approx({"4": 1, "1": 1.2})
    assert found["vec"].alternatives[0].ratio == pytest.approx(1.2)
    assert found["vec_scans"].moves_with == ""
    assert found["vec_scans"].values[-1].pairs == 0
    assert ratios(found["vec_scans"])["first"] == pytest.approx(1.1)
    assert found["threads"].moves_with == ""


def test_axes_of_unrelated_kernels_are_not_compared():
    found = by_axis([made("v1", 10), made("v9:threads=128,exp=exp2", 20)])
    assert all(value.pairs == 0 for effect in found.values() for value in effect.values)
    assert {effect.moves_with for effect in found.values()} == {""}


def test_values_around_the_winner():
    rounds = [10.0, 11, 10, 12, 10, 11, 10, 12]
    rows = [
        made("v5", samples=rounds),
        made("v5:threads=128", samples=[1.3 * us for us in rounds]),
        made("v5:threads=512", samples=rounds[::-1]),
        made("v5:threads=1024", outcome=Outcome.PRUNED, reason="spills"),
        made("v5:threads=64", samples=[33.0] * 8),
        made("v5:threads=64,exp=exp2", samples=[30.0] * 8),
    ]
    threads, exp = effects(rows)
    assert threads.winner == "256"
    tied, slower, slowest, pruned = threads.alternatives
    assert slowest.value == "64"
    assert (tied.value, tied.tied) == ("512", True)
    assert (slower.value, slower.tied, slower.ratio) == ("128", False, pytest.approx(1.3))
    assert (pruned.value, pruned.ratio, pruned.reason) == ("1024", None, "pruned: spills")
    assert (exp.winner, exp.alternatives) == ("expf", ())


def test_edited_files_and_models_beside_times_have_no_part():
    rows = [made("v5", 10), made("v5:exp=exp2", 12)]
    others = [made("mine.cu", 1, kind=Kind.FILE), modelled("v5:exp=__expf", 1)]
    assert effects(rows + others) == effects(rows)
    assert effects(others[:1]) == []


def test_effects_of_a_model():
    (exp,) = effects([modelled("v5", 10), modelled("v5:exp=exp2", 12)])
    assert ratios(exp) == pytest.approx({"expf": 1, "exp2": 1.2})
    assert exp.alternatives[0].ratio == pytest.approx(1.2)
