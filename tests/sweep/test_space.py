"""Spaces are read from what a user writes, in one go or from a study and options."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kgen.errors import UsageError
from kgen.sweep.space import MAX_RANGE, Space, parse_setting
from kgen.sweep.study import read_study

STUDY = """
[sweep]
variants = ["v5", "v7:exp=exp2"]
rows = 64
cols = [257, 4096]
where = "threads >= 64"
[sweep.axes]
threads = [128, "256..1024:256"]
items_per_thread = ["auto", 4]
prefetch = [false]
"""


def test_what_a_user_writes() -> None:
    axes = {"threads": ["64", 128], "items": ["auto", "2"], "cache": ["shared", "none"]}
    space = Space.make(["v5", "v7", "v5"], [1, 2, 2], [3], axes, "rows > 1")
    assert space.variants == ("v5", "v7")
    assert space.shapes == ((1, 3), (2, 3))
    assert space.axes == {
        "threads_per_block": (64, 128),
        "items_per_thread": (None, 2),
        "cache": ("inputs_shared", "none"),
    }
    assert space.combinations == 2 * 2 * 2 * 2 * 2


def test_ranges() -> None:
    axes = Space.make(["v5"], axes={"threads": ["32..128:32", 512, 64], "items": ["1..3"]}).axes
    assert axes == {"threads_per_block": (32, 64, 96, 128, 512), "items_per_thread": (1, 2, 3)}


def test_a_setting_on_the_command_line() -> None:
    assert parse_setting("threads = 128, 256") == ("threads_per_block", ("128", "256"))
    for text in ("threads", "threads=", "=4", "threads=,"):
        with pytest.raises(UsageError):
            parse_setting(text)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Space.make(["v77"]), "no version 'v77'; did you mean 'v7'"),
        (lambda: Space.make(["v7"], axes={"itmes": [4]}), "no axis 'itmes'; did you mean 'items'"),
        (lambda: Space.make(["v7"], axes={"cache": ["nome"]}), "cache=nome is not a choice"),
        (lambda: Space.make(["v7"], axes={"threads": ["auto"]}), "a whole number is needed"),
        (lambda: Space.make(["v7"], axes={"threads": [1.5]}), "threads=1.5: a whole"),
        (lambda: Space.make(["v7"], axes={"threads": []}), "gives threads no value"),
        (lambda: Space.make(["v7"], axes={"items": [1], "items_per_thread": [2]}), "items twice"),
        (lambda: Space.make(["v7:items=4"], axes={"items": [1]}), "v7:items=4 sets items, and so"),
        (lambda: Space.make(["v7"], axes={"threads": ["64..32"]}), "64..32 is no range"),
        (lambda: Space.make(["v7"], axes={"threads": ["1..9:0"]}), "1..9:0 is no range"),
        (
            lambda: Space.make(["v7"], axes={"threads": ["1..999999999"]}),
            f"is no range of 1 to {MAX_RANGE} values",
        ),
        (lambda: Space.make(["v7"], rows=[0]), "rows=.0.: a sweep needs whole numbers from 1"),
        (lambda: Space.make(["v7"], cols=["64"]), "cols=.'64'.: a sweep needs whole numbers"),  # type: ignore[list-item]
        (lambda: Space.make(["v7"], cols=[]), "cols=.*a sweep needs whole numbers"),
        (lambda: Space.make(["v7"], where="colz"), "where: there is no name 'colz'"),
    ],
)
def test_what_is_no_space(make: Callable[[], Space], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        make()


def study(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_study_is_a_space(tmp_path: Path) -> None:
    space = read_study(study(tmp_path, STUDY))
    assert (space.variants, space.rows, space.cols) == (("v5", "v7:exp=exp2"), (64,), (257, 4096))
    assert space.axes == {
        "threads_per_block": (128, 256, 512, 768, 1024),
        "items_per_thread": (None, 4),
        "prefetch": (False,),
    }
    assert space.where == "threads >= 64"


def test_a_study_with_a_byte_order_mark(tmp_path: Path) -> None:
    marked = read_study(study(tmp_path, "\ufeff" + STUDY))
    assert marked == read_study(study(tmp_path, STUDY))


def test_options_change_a_study(tmp_path: Path) -> None:
    space = read_study(study(tmp_path, STUDY))
    assert space.changed() == space.changed(rows=[64])
    changed = space.changed(["v8"], cols=[8], axes={"threads": [32], "vec": [1, 4]}, where="vec>1")
    assert (changed.variants, changed.rows, changed.cols) == (("v8",), (64,), (8,))
    assert changed.axes["threads_per_block"] == (32,) and changed.axes["vec_size"] == (1, 4)
    assert changed.axes["prefetch"] == (False,) and changed.axes["items_per_thread"] == (None, 4)
    assert changed.where == "(threads >= 64) and (vec>1)"
    assert Space.make(["v7"]).changed(where="vec > 1").where == "vec > 1"


def test_a_study_may_leave_everything_to_options(tmp_path: Path) -> None:
    space = read_study(study(tmp_path, ""))
    assert space.variants == () and space.changed(["v7"]) == Space.make(["v7"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[sweep\n", "is not TOML: .*line 1"),
        ("[sweeps]\n", "the file has no key 'sweeps'; did you mean 'sweep'"),
        ("[sweep]\nrow = [1]\n", r"\[sweep\] has no key 'row'; did you mean 'rows'"),
        ("sweep = 4\n", r"sweep = 4 is not a table; begin it with \[sweep\]"),
        ("[sweep]\naxes = 4\n", r"sweep.axes = 4 is not a table"),
        ("[sweep]\nrows = ['a']\n", "rows = 'a' is not a whole number"),
        ("[sweep]\nrows = [true]\n", "rows = True is not a whole number"),
        ("[sweep]\nvariants = [7]\n", "variants = 7 is not text in quotes"),
        ("[sweep]\nwhere = 7\n", "where = 7 is not text in quotes"),
        ("[sweep.axes]\nthreads = [1.5]\n", "threads = 1.5 is not a number, true"),
        ("[sweep.axes]\nthreds = [64]\n", "there is no axis 'threds'; did you mean 'threads'"),
        ("[sweep]\nwhere = 'colz'\n", "where: there is no name 'colz'"),
    ],
)
def test_what_is_no_study(text: str, sentence: str, tmp_path: Path) -> None:
    path = study(tmp_path, text)
    with pytest.raises(UsageError, match=f"study.toml.*{sentence}"):
        read_study(path)


def test_unreadable_studies(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml cannot be read: No such file"):
        read_study(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"bytes\.toml is not TOML"):
        read_study(tmp_path / "bytes.toml")
