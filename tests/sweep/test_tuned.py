"""The tuned table: who wins, what is found for a shape, and what is refused."""

import pytest
from msgspec.structs import replace

from kgen.errors import CheckFailed, UsageError
from kgen.specs.types import find_types
from kgen.store.measurement import Kind, Outcome
from kgen.sweep.tuned import (
    find,
    merge,
    read_table,
    shape_class,
    winners,
    write_table,
)
from tests.sweep.made import made, modelled

H200, NOW = "NVIDIA H200", "aaaaaaaa"


def table(*rows):
    return winners(rows)


def only(*rows):
    (winner,) = winners(rows)
    return winner


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1, 1), (1, 1)),
        ((1024, 2047), (1024, 1024)),
        ((1023, 2048), (512, 2048)),
        ((3, 257), (2, 256)),
    ],
)
def test_classes_begin_at_powers_of_two(shape, expected):
    assert shape_class(*shape) == expected


def test_the_winner_carries_its_evidence():
    rounds = [10.0, 10.2, 9.9, 10.1, 10, 10, 10, 9.8]
    best = made("v7", samples=rounds, percent_of_copy=88.0, l2="cold", protocol_name="rotated")
    found = only(made("v5", samples=[12.0] * 8), best, made("v3", samples=rounds[::-1], l2="cold"))
    assert (found.variant, found.ties, found.candidates) == ("v7", ("v3",), 3)
    assert (found.median_us, found.low_us, found.high_us) == (10, 9.8, 10.2)
    assert found.spread_percent == pytest.approx(2)
    assert (found.percent_of_copy, found.run, found.l2, found.arch) == (88.0, "a", "cold", "sm_90")
    assert found.measured_at.startswith("2026-01-02")


def test_only_complete_timed_variants_can_win():
    others = [
        made("v1", 1, is_complete=False),
        made("v2", outcome=Outcome.WRONG),
        made("mine.cu", 1, kind=Kind.FILE),
        made("copy_four", 1, kind=Kind.COPY),
        modelled("v3", 1),
        made("v6", samples=[1.0, 1.0]),
        made("v7", samples=[1.0, 1.0], run="b"),
        made("v8", 1, outcome=Outcome.FAILED, reason="stopped"),
    ]
    assert only(*others, made("v5", 12)).variant == "v5"
    assert winners([*others[:5], others[-1]]) == []


def test_runs_compete_and_the_newest_time_of_a_variant_counts():
    later = {"run": "b", "measured_at": "2026-02-01T00:00:00+00:00"}
    sweep = [made("v5", 12), made("v7", 10), made("v3", 11)]
    assert only(made("v5", 10.5, **later), *sweep).variant == "v7"
    assert only(made("v7", 13, **later), *sweep).variant == "v3"
    assert only(made("v5", 9, **later), *sweep).run == "b"


def test_shapes_devices_and_templates_have_winners_of_their_own():
    rows = [made("v5", 3), made("v6", 2, cols=4097), made("v7", 1, device="T4")]
    found = table(*rows, made("v8", 0.5, templates="bbbbbbbb"))
    assert sorted(winner.variant for winner in found) == ["v5", "v6", "v7", "v8"]


def test_types_have_winners_of_their_own(tmp_path):
    half, mixed = find_types("bfloat16"), find_types("bfloat16", "float32")
    rows = [made("v5", 3), made("v6", 2, dtype="bfloat16", out_dtype="bfloat16")]
    found = merge(table(*rows), table(made("v7", 1, dtype="bfloat16")))
    write_table(tmp_path / "tuned.json", found)
    found = read_table(tmp_path / "tuned.json")
    assert [find(found, H200, 1024, 4096, NOW, *types).variant for types in ((), (half,))] == [
        "v5",
        "v6",
    ]
    assert find(found, H200, 1024, 4096, NOW, mixed).variant == "v7"
    with pytest.raises(UsageError, match="no out_dtype 'float16', but bfloat16, float32"):
        find(found, H200, 1024, 4096, NOW, find_types("bfloat16", "float16"))


def test_a_table_from_before_there_were_types_is_of_float32(tmp_path):
    write_table(tmp_path / "tuned.json", table(made("v5", 3)))
    text = (tmp_path / "tuned.json").read_text()
    (tmp_path / "tuned.json").write_text(text.replace(' "out_dtype": "float32",', ""))
    assert "out_dtype" not in (tmp_path / "tuned.json").read_text()
    assert find(read_table(tmp_path / "tuned.json"), H200, 1024, 4096, NOW).variant == "v5"


def test_a_table_comes_back_from_its_file(tmp_path):
    found = merge([], table(made("v5", 3), made("v6", 2, cols=257), made("v7", 2, cols=257)))
    write_table(tmp_path / "tuned.json", found)
    assert read_table(tmp_path / "tuned.json") == found
    write_table(tmp_path / "tuned.json", [])
    assert read_table(tmp_path / "tuned.json") == []


def test_merging_replaces_what_was_measured_again_and_keeps_the_rest():
    old = table(made("v5", 3), made("v6", 2, cols=257), made("v7", 1, device="T4"))
    found = merge(old, table(made("v3", 4, run="b")))
    assert [(it.device, it.cols, it.variant) for it in found] == [
        (H200, 257, "v6"),
        (H200, 4096, "v3"),
        ("T4", 4096, "v7"),
    ]


MEASURED = [
    made("v5", 3, cols=4096),
    made("v6", 3, cols=4100),
    made("v7", 3, cols=6000),
    made("v8", 3, cols=4096, rows=2000),
    made("v9", 3, cols=257),
]


@pytest.mark.parametrize(
    ("rows", "cols", "variant"),
    [
        (1024, 4096, "v5"),
        (1025, 4096, "v5"),
        (1999, 4096, "v8"),
        (1024, 4100, "v6"),
        (2000, 4100, "v6"),
        (1024, 8191, "v7"),
        (1500, 511, "v9"),
    ],
)
def test_a_shape_has_the_nearest_winner_of_its_class(rows, cols, variant):
    assert find(table(*MEASURED), H200, rows, cols, NOW).variant == variant


def test_a_winner_that_cannot_hold_the_row_is_passed_over():
    found = table(made("v7:items=4", 2), made("v6", 3, cols=7000))
    assert find(found, H200, 1024, 4098, NOW).variant == "v7:items=4"
    assert find(found, H200, 1024, 5000, NOW).variant == "v6"
    with pytest.raises(
        UsageError, match=r"can run on 1024 x 5000 \(v7:items=4: .*items.*kgen sweep"
    ):
        find(found[:1], H200, 1024, 5000, NOW)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("Tesla T4", 1024, 4096, NOW), UsageError, "no device 'Tesla T4', but NVIDIA H200"),
        (
            (H200, 1024, 4096, NOW, find_types("float16")),
            UsageError,
            "no dtype 'float16', but float32",
        ),
        (
            (H200, 1024, 4096, "cccccccc"),
            CheckFailed,
            r"v5 won at 1024 x 4096 with the templates aaaaaaaa \(2026-01-02\), and this kgen has cccccccc",
        ),
        (
            (H200, 4, 4096, NOW),
            UsageError,
            r"no shape of 4 to 7 rows and 4096 to 8191 cols was measured on NVIDIA H200, only 1024 x 257, 1024 x 4096",
        ),
    ],
)
def test_foreign_and_stale_keys_are_refused_with_what_to_do(arguments, error, words):
    found = table(made("v5", 3), made("v9", 3, cols=257))
    with pytest.raises(error, match=words + ".*run `kgen sweep` on this GPU"):
        find(found, *arguments)


def test_new_templates_do_not_hide_behind_old_ones():
    found = table(made("v5", 3), made("v6", 9, cols=5000, templates="bbbbbbbb"))
    assert find(found, H200, 1024, 4096, "bbbbbbbb").variant == "v6"


def test_an_empty_matrix_and_an_empty_table_have_no_winner():
    with pytest.raises(UsageError, match="0 x 4096 has no elements"):
        find(table(made("v5", 3)), H200, 0, 4096, NOW)
    with pytest.raises(UsageError, match="no device 'NVIDIA H200', but nothing"):
        find([], H200, 1, 4096, NOW)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "Input data was truncated"),
        ("caf", "JSON is malformed"),
        ('{"a": ' + "[" * 100_000, "maximum recursion depth"),
        ("[]", "Expected `object`, got `array`"),
        ('{"winners": []}', "Object missing required field `kgen_tuned`"),
        ('{"kgen_tuned": 2, "winners": []}', "its format is 2, this kgen's 1"),
        ('{"kgen_tuned": 1}', "Object missing required field `winners`"),
        (
            '{"kgen_tuned": 1, "winners": [3]}',
            r"Expected `object`, got `int` - at `\$.winners\[0\]`",
        ),
        ('{"kgen_tuned": 1, "winners": [{}]}', "Object missing required field `device`"),
        ('{"kgen_tuned": 1, "winners": [{"mood": 1}]}', "Object contains unknown field `mood`"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, text, words):
    path = tmp_path / "tuned.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=f"{path} is no tuned table: {words}"):
        read_table(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rows", "1"),
        ("rows", 0),
        ("cols", 0),
        ("median_us", None),
        ("ties", "v3"),
        ("ties", [1]),
        ("variant", 7),
    ],
)
def test_a_damaged_winner_is_refused(tmp_path, field, value):
    path = tmp_path / "tuned.json"
    write_table(path, [replace(only(made("v5", 3)), **{field: value})])
    with pytest.raises(
        UsageError, match=rf"{path} is no tuned table: Expected .* at `\$\.winners\[0\]\.{field}"
    ):
        read_table(path)


def test_a_missing_table_says_how_to_make_one(tmp_path):
    with pytest.raises(UsageError, match=r"there is no .*none\.json; run `kgen sweep`"):
        read_table(tmp_path / "none.json")
    with pytest.raises(UsageError, match="cannot be read"):
        read_table(tmp_path)
