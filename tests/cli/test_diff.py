"""diff: of variants, files, pipes and what git has of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import kgen
from tests.cli.conftest import Ended

Call = Callable[..., Ended]


@pytest.fixture
def pipe() -> Iterator[Callable[[str], str]]:
    """Give the path of a pipe that holds a text, as a shell's `<(...)` does."""
    with ExitStack() as stack:

        def make(text: str) -> str:
            read, write = os.pipe()
            stack.callback(os.close, read)
            with os.fdopen(write, "w") as file:
                file.write(text)
            return f"/dev/fd/{read}"

        yield make


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a repository of the test's folder, with two commits of generated/softmax_v5.cu."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "a")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a@b")
    file = tmp_path / "generated" / "softmax_v5.cu"
    file.parent.mkdir()
    text = kgen.render("v5").text
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    for now in (text.replace("WARP_SIZE = 32;", "WARP_SIZE = 32;  // old"), text):
        file.write_text(now)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", "one"], check=True)
    return tmp_path


def test_diff_of_versions(call: Call) -> None:
    difference = call("diff", "v5", "v6")
    assert difference.code == 0
    axes, _, text = difference.out.partition("\n\n")
    assert axes.splitlines() == ["vec: 1 -> 4", "vec_scans: none -> first"]
    assert text.startswith("--- softmax_v5.cu\n+++ softmax_v6.cu\n@@ ")
    assert "\n+constexpr int VEC_SIZE = 4;\n" in text
    assert "// variant" not in text


def test_diff_of_the_bodies_of_two_overrides(call: Call) -> None:
    difference = call("diff", "v7:items=4", "v7:items=8", "--body")
    assert difference.out.startswith("items: 4 -> 8\n\n--- softmax_v7_items4.cu\n")
    changed = [line for line in difference.out.splitlines() if line.startswith(("+", "-"))][2:]
    assert changed[:2] == [
        "-constexpr int ITEMS_PER_THREAD = 4;",
        "+constexpr int ITEMS_PER_THREAD = 8;",
    ]
    assert not any("//" in line for line in changed)


def test_diff_as_json(call: Call) -> None:
    difference = call("diff", "v7:items=4", "v7:items=8", "--body", "--json").json
    assert difference["fields"] == {"items_per_thread": [4, 8]}
    assert "+constexpr int ITEMS_PER_THREAD = 8;" in difference["diff"]
    assert call("diff", "v7", "v7", "--json").json == {"fields": {}, "diff": []}


def test_diff_of_two_files(call: Call, edited: Callable[..., Path]) -> None:
    old = edited("v5", "// softmax_v5:", "// softmax_v5:")
    new = edited("v6", "VEC_SIZE = 4;", "VEC_SIZE = 4;  // floats")
    difference = call("diff", old, new)
    assert difference.out.startswith("vec: 1 -> 4\n")
    assert f"--- {old}\n+++ {new}\n" in difference.out
    assert "+constexpr int VEC_SIZE = 4;  // floats\n" in difference.out


def test_diff_of_a_version_and_its_edited_file(call: Call, edited: Callable[..., Path]) -> None:
    assert call("diff", "v5", "v5").out == "same axes\n\n"
    path = edited("v5", "* inverse_sum", "* 2.0f * inverse_sum")
    difference = call("diff", "v5", path)
    assert difference.out.startswith(f"same axes\n\n--- softmax_v5.cu\n+++ {path}\n")
    assert difference.out.count("* 2.0f * inverse_sum") == 1


def test_diff_of_pipes(call: Call, pipe: Callable[[str], str]) -> None:
    old, new = pipe(kgen.render("v5").text), pipe(kgen.render("v6").text)
    difference = call("diff", old, new)
    assert difference.out.startswith(
        f"vec: 1 -> 4\nvec_scans: none -> first\n\n--- {old}\n+++ {new}\n"
    )


def test_diff_of_the_standard_input(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kgen", "diff", "v5", "-"]
    text = kgen.render("v5").text + "// mine\n"
    ran = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert ran.stdout.endswith("\n+// mine\n") and "\n+++ /dev/stdin\n" in ran.stdout


@pytest.mark.parametrize("old", ["v5", "generated/softmax_v5.cu", "./generated/softmax_v5.cu"])
def test_diff_of_a_revision(call: Call, repository: Path, old: str) -> None:
    difference = call("diff", f"HEAD~1:{old}", "v5")
    assert difference.code == 0
    path = old if old.endswith(".cu") else "./generated/softmax_v5.cu"
    assert difference.out.startswith(f"same axes\n\n--- HEAD~1:{path}\n+++ softmax_v5.cu\n@@ ")
    assert "\n-constexpr int WARP_SIZE = 32;  // old\n" in difference.out
    assert call("diff", f"HEAD:{old}", "v5").out == "same axes\n\n"


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ("HEAD~9:v5", "'HEAD~9' is no revision of git, and no version; known are "),
        ("v77:items=4", "'v77' is no revision of git, and no version; did you mean 'v7'?"),
        ("HEAD:v6", "git has no HEAD:./generated/softmax_v6.cu (path "),
        ("HEAD:other.cu", "git has no HEAD:other.cu (path "),
        ("HEAD:v77", "there is no version 'v77'; did you mean 'v7'?"),
    ],
)
def test_what_git_has_not(call: Call, repository: Path, old: str, words: str) -> None:
    refused = call("diff", old, "v5")
    assert refused.code == 2 and refused.err.startswith(f"kgen: {words}")
    assert refused.err.count("\n") == 1


def test_no_repository_and_no_git(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = call("diff", "HEAD:v5", "v5")
    assert refused.code == 2 and "no revision of git (not a git repository" in refused.err
    monkeypatch.setenv("PATH", "/nonexistent")
    missing = call("diff", "HEAD:v5", "v5")
    assert missing.code == 3 and "revisions are git's, which does not run" in missing.err


@pytest.mark.parametrize("colour", [None, "1"])
def test_lines_are_printed_as_they_are(
    call: Call, edited: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, colour: str | None
) -> None:
    line = "\tint x;  // " + "mine " * 60 + "."
    path = edited("v5", "#include <cfloat>", line)
    if colour:
        monkeypatch.setenv("FORCE_COLOR", colour)
    assert f"+{line}" in call("diff", "v5", path).out
