"""The answer of a sweep, printed and as JSON."""

import json

from kgen.cli.answer_tables import as_objects, print_answer
from kgen.store.measurement import Kind, Outcome
from kgen.sweep.answer import answer
from kgen.sweep.model import RANKING
from tests.sweep.made import made, modelled

ROWS = [
    *(made("v8", cols / 128, cols=cols, registers=30) for cols in (512, 2048)),
    *(made("v8:threads=128", cols / 100, cols=cols) for cols in (512, 2048)),
    *(made("v7", 8, cols=cols) for cols in (512, 2048)),
    *(made("copy_four", 2, cols=cols, kind=Kind.COPY) for cols in (512, 2048)),
    made("v8:threads=64", cols=512, outcome=Outcome.PRUNED, reason="too few threads"),
]


def printed(capsys, rows, refused=None):
    print_answer(answer(rows, refused))
    return capsys.readouterr().out


def line(text, *words):
    """The one line that begins with these words."""
    (found,) = [it.split() for it in text.splitlines() if it.split()[: len(words)] == list(words)]
    return found


def test_the_answer_as_tables(capsys):
    text = printed(capsys, ROWS, {"more threads than rows": 7})
    assert line(text, "1024", "x", "512", "v8", "4.00")[3:] == ["v8", "4.00", "0.0", "50", "30"]
    assert "1024 rows: v8 is best up to N=512, v7 from N=2048 (they cross near 1024)" in text
    assert line(text, "v7", "v7", "8.00") == ["v7", "v7", "8.00", "2.000"]
    assert "1024 x 512: 3 ok; 1 pruned: too few threads" in text
    assert "7 combinations refused: more threads than rows" in text


def test_effects_show_what_they_rest_on(capsys):
    text = printed(capsys, ROWS[:1] + ROWS[2:3] + ROWS[-1:])
    assert "what each axis was worth at 1024 x 512" in text
    assert line(text, "threads", "256")[2:] == ["best", "winner"]
    assert line(text, "128")[1:] == ["1.280", "1.28", "to", "1.28", "1", "1.280"]
    assert line(text, "64") == ["64", "pruned:", "too", "few", "threads"]


def test_two_axes_that_are_one_change_are_shown_once(capsys):
    text = printed(capsys, [made("v5", 10), made("v8", 12)])
    assert line(text, "threads_per_row", "(with", "topology)")[3:] == ["auto", "best", "winner"]
    assert "topology (with" not in text
    text = printed(capsys, [made("v5", 10), made("v6", 12), made("v6_double", 13)])
    assert "vec (with vec_scans)" in text
    assert line(text, "vec_scans", "first")[2:] == ["best"]


def test_stretches_in_words(capsys):
    times = {"v8": (1, 9, 9), "v7": (2, 2, 9), "v3": (9, 9, 3)}
    rows = [
        made(name, us, cols=cols)
        for name, of in times.items()
        for cols, us in zip((64, 256, 1024), of, strict=True)
    ]
    words = "v8 is best up to N=64, v7 at N=256 (they cross near "
    assert words in printed(capsys, rows)
    assert "1024 rows: v7 is best from N=64 to 256" in printed(capsys, rows[3:5])


def test_a_model_is_never_called_a_time(capsys):
    text = printed(capsys, [modelled("v5", 12), modelled("v7", 10)])
    assert text.startswith("Nothing was timed: the order is that of a cost model of an NVIDIA H200")
    assert "model us" in text and " us " not in text.replace("model us ", "")


def test_an_empty_answer_prints_what_became_of_all(capsys):
    text = printed(capsys, ROWS[-1:])
    assert "nothing valid is left" in text
    assert "1 pruned: too few threads" in text


def test_the_answer_as_json():
    found = json.loads(json.dumps(as_objects(answer(ROWS, {"rule": 7}))))
    first = found["shapes"][0]
    assert (first["best"]["variant"], first["best"]["cost_us"], first["percent_of_copy"]) == (
        "v8",
        4,
        50,
    )
    assert first["ranked"] == ["v8", "v8:threads=128", "v7"]
    threads = next(effect for effect in first["effects"] if effect["axis"] == "threads")
    assert [(value["value"], value["ratio"]) for value in threads["values"]] == [
        ("256", 1),
        ("128", 1.28),
    ]
    assert first["endings"][1] == {
        "outcome": "pruned",
        "reason": "too few threads",
        "count": 1,
        "example": "v8:threads=64",
        "is_same": True,
    }
    assert found["crossovers"][0]["new"] == "v7"
    assert (found["refused"], found["why_empty"], found["is_modelled"]) == ({"rule": 7}, "", False)


def test_a_model_says_how_well_it_ranks(capsys):
    rows = [modelled("v5", 12), modelled("v5:threads=128", 10), modelled("v7", 11)]
    text = printed(capsys, rows)
    assert str(RANKING) in text and "0.73 at 1025 x 257" in str(RANKING)
    assert "the model's best" in text and "to the model's best" in text
    assert line(text, "axis", "value")[2] == "model"
    assert as_objects(answer(rows))["model"] == str(RANKING)
    assert str(RANKING) not in printed(capsys, ROWS)


def test_columns_with_nothing_in_them_are_left_out(capsys):
    text = printed(capsys, [modelled("v5", 12), modelled("v5:threads=128", 10)])
    assert line(text, "shape") == ["shape", "best", "model", "us"]
    assert "tied with" in printed(capsys, [made("v5", 10), made("v6", 10)])
