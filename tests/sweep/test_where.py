"""Conditions on points: what they say, what they refuse to read, and that nothing can be run."""

from pathlib import Path

import pytest

from kgen.errors import UsageError
from kgen.specs.variants import parse
from kgen.sweep.point import Point
from kgen.sweep.where import MAX_LENGTH, NAMES, Where

V7 = Point(parse("v7:threads=512"), 64, 4096)
V8 = Point(parse("v8"), 64, 4096)
V9 = Point(parse("v9"), 64, 4096)

TRUE_OF_V7 = [
    "threads == 512",
    "threads_per_block == 512 and vec == 4 and vec_size == 4",
    "rows * cols == 262144",
    "cols in (257, 4096)",
    "cols not in [257, 1024]",
    "cache == inputs_registers",
    "cache == 'inputs_registers'",
    "registers == cache",
    "cache != none",
    "cache in (none, inputs_registers)",
    "version == v7",
    "version in ('v5', 'v7')",
    "variant == 'v7:threads=512'",
    "prefetch == false and not prefetch",
    "prefetch == False",
    "items == 2",
    "tile == auto and grid == auto",
    "not tile < 5 and not tile >= 5",
    "-threads < 0",
    "64 <= threads_per_row <= 512",
    "scans == 1 and is_online and in_registers",
    "cols / threads == 8 and cols // 3 == 1365 and cols % 3 == 1",
    "threads > 512 or rows + cols - 1 >= 4159",
    "row_map != grid",
    "true and not false",
]


@pytest.mark.parametrize("text", TRUE_OF_V7)
def test_conditions_that_hold(text: str) -> None:
    assert Where(text)(V7) is True


@pytest.mark.parametrize(
    "text",
    ["threads == 256", "cache == none", "not is_online", "items > 2", "grid > 0", "0 < grid", "0"],
)
def test_conditions_that_do_not_hold(text: str) -> None:
    assert Where(text)(V7) is False


def test_a_word_that_is_an_axis_too_is_the_choice_of_the_axis_it_is_compared_with() -> None:
    assert Where("row_map == grid_stride and grid == 256")(V9)
    assert Where("row_map == grid")(Point(parse("t1"), 1, 1))


def test_an_axis_has_the_value_of_the_kernel_that_runs() -> None:
    assert Where("items == auto")(V8)
    assert Where("items == 1")(Point(parse("v7"), 1, 1024))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("__import__('os').system('true')", r"__import__\('os'\).* cannot be used|no name '__imp"),
        ("__import__", "there is no name '__import__'"),
        ("().__class__.__bases__", r"\(\).__class__.* cannot be used"),
        ("threads.real", "threads.real cannot be used"),
        ("cols[0]", r"cols\[0\] cannot be used"),
        ("(lambda: 1)()", "cannot be used"),
        ("[c for c in (1, 2)]", "cannot be used"),
        ("(c := 3)", "cannot be used"),
        ("f'{cols}'", "cannot be used"),
        ("1 if cols else 2", "1 if cols else 2 cannot be used"),
        ("{1: 2}", "cannot be used"),
        ("cols ** 9", "operator Pow cannot be used"),
        ("cols << 9", "operator LShift cannot be used"),
        ("cols is 4", "operator Is cannot be used"),
        ("await cols", "cannot be used|not an expression"),
        ("cols = 4", "'cols = 4' is not an expression"),
        ("cols ==", "'cols ==' is not an expression"),
        ("import os", "'import os' is not an expression"),
        ("", "'' is not an expression"),
        ("cols\0", "not an expression"),
        ("(" * 500 + "1" + ")" * 500, "not an expression"),
        ("not " * 480 + "cols", "not an expression"),
        ("1+" * MAX_LENGTH + "1", f"at most {MAX_LENGTH} characters"),
        ("colz > 3", "there is no name 'colz'; did you mean 'cols'"),
        ("warp", "there is no name 'warp'"),
        ("cache == nome", "cache=nome is not a choice; did you mean 'none'"),
        ("cache in (none, regs)", "cache=regs is not a choice"),
        ("version == v77", "there is no version 'v77'; did you mean 'v7'"),
        ("cache == 4", "cache is compared with 4; cache takes words"),
        ("cache == cols + 1", r"cache is compared with cols \+ 1"),
        ("prefetch == maybe", "prefetch=maybe is not a choice"),
        ("None", "None is neither a number nor a word"),
        ("1j", "1j is neither a number nor a word"),
        ("b'x' == 1", "b'x' is neither"),
        ("cols in 4", "cols in 4: a list stands after `in`"),
        ("cache in none", "cache in 'none': a list stands after `in`"),
        ("'a' in 'abc'", "a list stands after `in`"),
        ("cols == (1, 2)", r"cols == \(1, 2\): a list stands after `in`, .*only there"),
    ],
)
def test_what_is_no_condition(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^where: .*({sentence})"):
        Where(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("cols / (rows - 64) > 1", r"cols / \(rows - 64\) has no value for v7:threads=512 at 64 x"),
        ("cols > 1 and cols % 0 == 1", "cols % 0 has no value"),
        ("tile * 2 > 5", r"tile \* 2 > 5 has no value|tile \* 2 has no value"),
        ("exp + 1", r"exp \+ 1 has no value"),
        ("version * 99999 == 'x'", r"version \* 99999"),
        ("threads < 'v'", "threads < 'v' has no value"),
    ],
)
def test_conditions_without_a_value(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Where(text)(V7)


def test_nothing_of_python_is_called(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    for text in (
        f"open({str(trap)!r}, 'w')",
        f"__import__('pathlib').Path({str(trap)!r}).touch()",
        f"[].append(open({str(trap)!r}, 'w'))",
    ):
        with pytest.raises(UsageError):
            Where(text)
    assert not trap.exists()


def test_every_name_has_a_value_everywhere() -> None:
    for point in (V7, V8, V9, Point(parse("cpu"), 1, 1), Point(parse("t1"), 3, 5)):
        for name in NAMES:
            Where(f"{name} == {name}" if name == "variant" else name)(point)
