"""The answer of a sweep: winners, ties, crossovers, and what became of the rest."""

import pytest

from kgen.store.measurement import Kind, Outcome
from kgen.sweep.answer import answer
from tests.sweep.made import made, modelled

NOISE = [1.0, 1.02, 0.99, 1.01, 1.0, 0.98, 1.0, 1.03, 1.01, 0.99]
OTHER_NOISE = [1.02, 0.98, 1.01, 1.0, 1.0, 1.01, 0.99, 0.99, 1.0, 1.01]


def noisy(variant, us, noise=NOISE, **fields):
    return made(variant, samples=[us * factor for factor in noise], **fields)


def test_the_best_is_the_fastest_and_what_it_does_not_beat_is_tied():
    rows = [
        noisy("v5", 12),
        noisy("v7", 10),
        noisy("v3", 10, OTHER_NOISE),
        noisy("copy_four", 9, kind=Kind.COPY),
        noisy("copy_one", 11, kind=Kind.COPY),
    ]
    (shape,) = answer(rows).shapes
    assert {shape.best.variant, *(row.variant for row in shape.tied)} == {"v3", "v7"}
    assert shape.copy_us == pytest.approx(9)
    assert shape.percent_of_copy == pytest.approx(90, rel=0.01)
    assert list(shape.by_version) == [row.variant for row in shape.ranked]
    assert [str(ending) for ending in shape.endings] == ["3 ok"]


def test_a_row_that_left_early_does_not_win_by_its_few_samples():
    (shape,) = answer([noisy("v5", 12), made("v6", samples=[11.5, 12.4])]).shapes
    assert shape.best.variant == "v5"
    assert [row.variant for row in shape.tied] == ["v6"]


def times(rows, by_version):
    return [
        made(name, us, rows=rows, cols=cols)
        for name, of in by_version.items()
        for cols, us in of.items()
    ]


def test_versions_cross_where_straight_lines_of_logarithms_do():
    """v8 takes N/128 us and v7 8 us: they are equal at N = 1024."""
    v8 = {cols: cols / 128 for cols in (256, 512, 2048, 4096)}
    v7 = dict.fromkeys(v8, 8.0)
    found = answer(times(1024, {"v7": v7, "v8": v8}) + times(8, {"v7": {64: 1.0}}))
    (crossing,) = found.crossovers
    assert (crossing.old, crossing.new, crossing.rows) == ("v8", "v7", 1024)
    assert (crossing.last_cols, crossing.first_cols) == (512, 2048)
    assert crossing.cols == pytest.approx(1024)
    shown = [(it.rows, it.version, it.first_cols, it.last_cols) for it in found.stretches]
    assert shown == [(8, "v7", 64, 64), (1024, "v8", 256, 512), (1024, "v7", 2048, 4096)]


def test_the_fastest_variant_of_a_version_stands_for_it():
    rows = times(64, {"v7": {256: 5, 1024: 9}, "v8": {256: 9, 1024: 10}})
    rows += [made("v8:threads=64", us, rows=64, cols=cols) for cols, us in ((256, 4), (1024, 12))]
    assert [(it.old, it.new) for it in answer(rows).crossovers] == [("v8", "v7")]


def test_a_version_that_one_side_lacks_is_not_interpolated():
    rows = times(64, {"v3": {256: 4}, "v7": {256: 5, 1024: 9}, "v8": {1024: 10}})
    (crossing,) = answer(rows).crossovers
    assert (crossing.old, crossing.new, crossing.cols) == ("v3", "v7", None)


def test_ties_are_no_crossovers():
    rows = [noisy("v7", 10, cols=256), noisy("v6", 10.001, OTHER_NOISE, cols=256)]
    rows += [noisy("v7", 20.001, cols=512), noisy("v6", 20, OTHER_NOISE, cols=512)]
    rows += [noisy("v7", 30, cols=1024), noisy("v6", 35, OTHER_NOISE, cols=1024)]
    found = answer(rows)
    (stretch,) = found.stretches
    assert (stretch.version, stretch.first_cols, stretch.last_cols) == ("v7", 256, 1024)
    assert found.crossovers == ()


def test_a_crossing_that_ties_hide_is_not_made_up():
    """At 256 v7 is a little faster already, but not distinguishably."""
    rows = [noisy("v6", 10, cols=128), noisy("v7", 12, OTHER_NOISE, cols=128)]
    rows += [noisy("v6", 20.001, cols=256), noisy("v7", 20, OTHER_NOISE, cols=256)]
    rows += [noisy("v6", 40, cols=512), noisy("v7", 30, OTHER_NOISE, cols=512)]
    (crossing,) = answer(rows).crossovers
    assert (crossing.last_cols, crossing.first_cols, crossing.cols) == (256, 512, None)


def test_outcomes_are_counted_by_reason_whatever_the_numbers():
    rows = [made("v5", 10), made("v6", outcome=Outcome.WRONG, reason="row 3 is off\nby much")]
    for threads, spilled in ((128, 16), (256, 1024)):
        reason = f"spills {spilled} bytes"
        rows.append(made(f"v7:threads={threads}", outcome=Outcome.PRUNED, reason=reason))
    for name in ("v2", "v3"):
        rows.append(made(name, outcome=Outcome.FAILED, reason="nvcc crashed"))
    (shape,) = answer(rows).shapes
    assert [str(ending) for ending in shape.endings] == [
        "1 ok",
        "2 pruned: spills 16 bytes (and similar)",
        "2 failed: nvcc crashed",
        "1 wrong: row 3 is off",
    ]
    assert shape.endings[1].example == "v7:threads=128"


def test_an_empty_answer_says_why():
    rows = [made("v7", outcome=Outcome.PRUNED, reason="spills", cols=64)]
    rows += [made("copy_four", 9, kind=Kind.COPY, cols=64)]
    found = answer(rows, {"the row fits no register cache": 3})
    assert found.shapes[0].best is None
    assert found.why_empty == (
        "nothing valid is left of the sweep: 3 refused: the row fits no register cache; "
        "1 pruned: spills at 1024 x 64"
    )
    assert answer([]).why_empty.endswith("there was no combination to try")
    assert answer([*rows, made("v5", 3)]).why_empty == ""


def test_a_model_is_ranked_and_labelled():
    found = answer([modelled("v5", 12), modelled("v7", 10), made("v1", device="cpu")])
    (shape,) = found.shapes
    assert found.is_modelled and shape.is_modelled
    assert [row.variant for row in shape.ranked] == ["v7", "v5"]
    assert (shape.tied, shape.copy_us, shape.percent_of_copy) == ((), None, None)
    assert not answer([made("v5", 12), modelled("v7", 10)]).is_modelled
