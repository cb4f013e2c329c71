"""What the comparison of two sources says, and that its line numbers lead to the lines."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from kgen.sources.diff import compare, styled
from kgen.sources.edited import read_source
from kgen.sources.render import render
from kgen.sources.source import Source
from kgen.specs.variants import checked


def source(variant: str) -> Source:
    return render(checked(variant))


def changed(lines: list[str], sign: str) -> list[str]:
    return [line[1:].strip() for line in lines[2:] if line.startswith(sign)]


def test_a_version_and_its_parent() -> None:
    difference = compare(source("v5"), source("v6"))
    assert difference.fields == {
        "vec_size": (1, 4),
        "vec_scans": ("none", "first"),
    }
    assert difference.text_diff[:2] == ["--- softmax_v5.cu", "+++ softmax_v6.cu"]
    assert "constexpr int VEC_SIZE = 4;" in changed(difference.text_diff, "+")
    assert not difference.is_same


def test_two_overrides_of_one_version() -> None:
    old, new = source("v7:items=4"), source("v7:items=8")
    difference = compare(old, new, body_only=True)
    assert difference.fields == {"items_per_thread": (4, 8)}
    assert changed(difference.text_diff, "+")[0] == "constexpr int ITEMS_PER_THREAD = 8;"
    assert len(changed(difference.text_diff, "+")) == len(changed(difference.text_diff, "-")) == 1


@pytest.mark.parametrize("body_only", [False, True])
def test_a_source_is_the_same_as_itself(body_only: bool) -> None:
    difference = compare(source("t1"), source("t1"), body_only)
    assert difference.is_same and difference.fields == {} and difference.text_diff == []


def test_the_body_leaves_only_the_header_out() -> None:
    v1 = source("v1")
    header_edited = replace(v1, text="// edited\n" + v1.text)
    assert not compare(v1, header_edited).is_same
    assert compare(v1, header_edited, body_only=True).is_same
    body_edited = replace(v1, text=v1.text + "// edited\n")
    assert changed(compare(v1, body_edited, body_only=True).text_diff, "+") == ["// edited"]


def renamed(source: Source, stem: str) -> Source:
    kernels = tuple(kernel.replace(source.stem, stem) for kernel in source.kernels)
    return replace(source, stem=stem, text=source.text.replace(source.stem, stem), kernels=kernels)


@pytest.mark.parametrize("body_only", [False, True])
@pytest.mark.parametrize("variant", ["v5", "t1"])
def test_other_names_of_the_kernels_are_no_difference(variant: str, body_only: bool) -> None:
    old = source(variant)
    new = renamed(old, "softmax_v99_of_mine")
    assert compare(old, new, body_only).is_same
    edited = replace(
        new, text=new.text.replace("WARP_SIZE = 32;", f"WARP_SIZE = 32;  // {new.stem}_")
    )
    difference = compare(old, edited, body_only)
    assert changed(difference.text_diff, "+") == [
        "constexpr int WARP_SIZE = 32;  // softmax_v99_of_mine_"
    ]
    assert changed(difference.text_diff, "-") == ["constexpr int WARP_SIZE = 32;"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("templates ", "templates 0123"),
        ("// variant   v5", "// variant   v6"),
        ("// parent    ", "// parent    none\n//           of those, but"),
        ("shuffles of (", "shuffles\n// of ("),
    ],
)
def test_headers_that_differ_in_names_and_line_breaks_are_left_out(old: str, new: str) -> None:
    v5 = source("v5")
    assert old in v5.text
    assert compare(v5, replace(v5, text=v5.text.replace(old, new, 1))).is_same


@pytest.mark.parametrize(
    "old", ["two levels", "with x = ", "// requires  ", "// launch    ", "\n\n#include"]
)
def test_headers_that_say_something_else_are_shown(old: str) -> None:
    v5 = source("v5")
    edited = replace(
        v5, text=v5.text.replace(old, f"\n// mine{old}" if "#" in old else f"{old}mine ", 1)
    )
    added = changed(compare(v5, edited).text_diff, "+")
    assert len(added) == 1 and "mine" in added[0]
    assert compare(v5, edited, body_only=True).is_same


def test_what_follows_from_other_axes_is_not_said_again() -> None:
    old, new = source("v5"), source("v7:threads=512,static_cols=1000")
    assert not any(line[1:].startswith("// launch") for line in compare(old, new).text_diff)
    commented = replace(new, text=new.text.replace("// variant", "// mine\n// variant"))
    assert "// mine" in changed(compare(old, commented).text_diff, "+")


def test_equal_texts_of_different_specs_are_not_the_same() -> None:
    v1 = source("v1")
    other = replace(v1, spec=v1.spec.replace(grid_blocks=7))
    difference = compare(v1, other)
    assert difference.fields == {"grid_blocks": (None, 7)} and difference.text_diff == []
    assert not difference.is_same


def test_two_edited_files_are_named_by_their_paths(tmp_path: Path) -> None:
    old_path, new_path = tmp_path / "old.cu", tmp_path / "new.cu"
    old_path.write_text(source("v2").text)
    new_path.write_text(source("v2").text + "// mine\n")
    difference = compare(read_source(old_path), read_source(new_path))
    assert difference.fields == {}
    assert difference.text_diff[:2] == [f"--- {old_path}", f"+++ {new_path}"]
    assert changed(difference.text_diff, "-") == []
    assert changed(difference.text_diff, "+") == ["// mine"]


@pytest.mark.parametrize("body_only", [False, True])
def test_hunks_have_the_line_numbers_of_the_files(body_only: bool) -> None:
    old, new = source("v1"), source("v8:cache=inputs_shared,static_cols=1000")
    assert old.text.index("#include") != new.text.index("#include")
    lines = iter(compare(old, new, body_only).text_diff[2:])
    numbers = [0, 0]
    for line in lines:
        if hunk := re.match(r"@@ -(\d+)(?:,\d+)? \+(\d+)", line):
            numbers = [int(hunk[1]) - 1, int(hunk[2]) - 1]
            continue
        for which, text, sign in ((0, old.text, "-"), (1, new.text, "+")):
            if line[0] in (sign, " "):
                shown = line[1:].replace(old.stem, (old, new)[which].stem)
                assert text.split("\n")[numbers[which]] in (line[1:], shown)
                numbers[which] += 1
    assert numbers[0] > 0


def test_lines_that_look_like_hunks_are_left_alone() -> None:
    v1 = source("v1")
    other = replace(v1, text=v1.text + "@@ -1,2 +3,4 @@\n")
    assert compare(v1, other, body_only=True).text_diff[-1] == "+@@ -1,2 +3,4 @@"


def test_styles_follow_what_a_line_does() -> None:
    lines = ["--- a.cu", "+++ b.cu", "@@ -1 +1 @@", " same;", "---x;", "+++x;", "+y;"]
    assert [style for _, style in styled(lines)] == [
        "bold",
        "bold",
        "cyan",
        "",
        "red",
        "green",
        "green",
    ]
    assert [line for line, _ in styled(lines)] == lines
