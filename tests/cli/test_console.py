"""How wide and how colourful what is printed is, on a terminal and elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from kgen.cli import console
from kgen.cli.console import LEAST_WIDTH
from tests.cli.conftest import Ended

Call = Callable[..., Ended]
ANSI = re.compile(r"\x1b\[[0-9;]*m")
SILLY = ("0", "1", "-80", "wide", "99999999999999999999", "\N{SUPERSCRIPT TWO}", " ", "")


@pytest.mark.parametrize("colour", [{}, {"FORCE_COLOR": "1"}, {"NO_COLOR": "1"}], ids=str)
@pytest.mark.parametrize("width", [*SILLY, "40"])
def test_a_table_that_is_piped_has_whole_lines(
    call: Call, monkeypatch: pytest.MonkeyPatch, width: str, colour: dict[str, str]
) -> None:
    plain = call("list").out
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setenv("TERMINAL_WIDTH", width)
    for name, value in colour.items():
        monkeypatch.setenv(name, value)
    listed = call("list")
    assert listed.code == 0
    assert ANSI.sub("", listed.out) == plain
    assert ("\x1b" in listed.out) == ("FORCE_COLOR" in colour)


@pytest.mark.parametrize("width", ["0", "wide", "\N{SUPERSCRIPT TWO}"])
def test_help_and_errors_where_the_width_is_silly(spawn: Call, width: str) -> None:
    told = spawn("show", COLUMNS=width, TERMINAL_WIDTH=width, FORCE_COLOR=None)
    assert told.code == 2
    assert "Usage: kgen show [OPTIONS] VARIANT" in told.err


@pytest.mark.parametrize(("width", "used"), [(20, LEAST_WIDTH), (80, 80), (200, 200)])
def test_lines_on_a_terminal_fit_it(
    call: Call, monkeypatch: pytest.MonkeyPatch, width: int, used: int
) -> None:
    monkeypatch.setattr(console, "_on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    for command in (("list",), ("show", "v9"), ("show", "t1")):
        lines = call(*command).out.splitlines()
        assert used - 20 < max(map(len, lines)) <= used


def test_code_is_not_broken(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    piped = call("diff", "v5", "v6_fetch").out
    monkeypatch.setattr(console, "_on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    assert call("diff", "v5", "v6_fetch").out == piped
