"""What the answers to a sweep ask of its rows."""

import pytest

from kgen.specs.variants import parse
from kgen.specs.versions import VERSIONS
from kgen.store.measurement import Kind, Outcome
from kgen.sweep.rows import axes_of, best_first, contenders, finalists, is_tied, ratio, spec_of
from tests.sweep.made import made, modelled

VARIANTS = [*VERSIONS, "v7:items=8,threads=64", "v3:trip=runtime,exp=__expf", "v9:grid=auto"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_spec_comes_back_from_its_row(variant):
    assert spec_of(made(variant, 1)) == parse(variant).resolve(4096)


def test_a_row_without_a_spec_is_told():
    with pytest.raises(ValueError, match=r"copy_four has no spec"):
        spec_of(made("copy_four", 1, kind=Kind.COPY))


def test_the_least_items_are_auto_and_more_are_a_number():
    assert axes_of(made("v7:items=4", 1))["items_per_thread"] == "auto"
    assert axes_of(made("v7:items=8", 1))["items_per_thread"] == "8"
    assert axes_of(made("v7:threads=512", 1)) == axes_of(made("v7", 1)) | {
        "threads_per_block": "512"
    }


def test_only_right_variants_and_files_with_a_cost_compete():
    rows = [
        made("v5", 3),
        made("my.cu", 2, kind=Kind.FILE),
        made("copy_four", 1, kind=Kind.COPY),
        made("torch", 1, kind=Kind.PEER),
        made("v6", outcome=Outcome.WRONG, reason="off"),
        made("v7"),
        modelled("v8", 0.1),
    ]
    assert [row.variant for row in contenders(rows)] == ["v5", "my.cu"]
    assert [row.variant for row in contenders(rows[-2:])] == ["v8"]


def test_rows_that_left_the_search_come_after_the_finalists():
    left = made("v5", samples=[1.0] * 5)
    slow, fast = made("v6", 3), made("v7", samples=[2.0] * 6)
    assert finalists([left, slow, fast]) == [slow, fast]
    assert best_first([left, slow, fast]) == [fast, slow, left]


def test_most_of_a_long_search_is_needed_to_win_it():
    left, stayed = made("v5", samples=[1.0] * 19), made("v6", samples=[2.0] * 40)
    assert best_first([left, stayed]) == [stayed, left]


def test_a_short_run_has_finalists_of_its_own():
    short, long = made("v5", samples=[1.0] * 6, run="b"), made("v7", samples=[2.0] * 40)
    assert best_first([long, short]) == [short, long]


def test_what_left_a_run_early_wins_nothing_when_the_others_are_of_a_later_run():
    left = made("v5", samples=[1.0, 1.0], run="b")
    assert best_first([left, made("v7", 2)])[0].variant == "v7"
    assert finalists([left]) == [left]


def test_rows_of_a_run_are_paired_over_the_rounds_that_both_have():
    rounds = [10.0, 20, 10, 20, 10, 20, 10, 20]
    a, b = made("v5", samples=[1.1 * us for us in rounds[:7]]), made("v6", samples=rounds)
    found = ratio(a, b)
    assert (found.low, found.high) == pytest.approx((1.1, 1.1))
    assert not is_tied(a, b)


def test_rows_of_two_runs_are_compared_by_their_intervals():
    rounds = [10.0, 20, 10, 20, 10, 20, 10, 20]
    a = made("v5", samples=[1.1 * us for us in rounds], run="b")
    assert is_tied(a, made("v6", samples=rounds))
    assert ratio(a, made("v6", samples=rounds)).high == pytest.approx(2.2)
    assert not is_tied(made("v5", 1.1, run="b"), made("v6", 1))


def test_a_model_knows_no_ties_but_equal_figures():
    assert is_tied(modelled("v5", 2), modelled("v6", 2))
    assert not is_tied(modelled("v5", 2.001), modelled("v6", 2))
