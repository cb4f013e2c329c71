"""Failures of many shapes, told once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kgen.errors import CheckFailed, MissingTool
from kgen.evidence import failures
from kgen.evidence.check import CheckRow, check
from kgen.evidence.failures import Failure, findings
from kgen.sources.render import render
from kgen.specs.variants import checked

RACE = Failure("race", "race on 0", (3, 9))
OTHER_RACE = Failure("race", "race on 1", (3, 10))
WRONG = Failure("result", "input zeros: wrong")


def row(variant: str, cols: int, *failed: Failure) -> CheckRow:
    return CheckRow(variant, 2, cols, ("zeros",), failures=failed)


def test_one_finding_for_a_kind_and_its_lines() -> None:
    rows = [row("a", 1, WRONG), row("a", 2), row("a", 3, RACE, WRONG), row("b", 1, WRONG)]
    rows += [row("a", cols, replace(RACE, message="race on 5"), OTHER_RACE) for cols in (4, 5, 6)]
    told = [(one.variant, one.kind, one.lines, one.count) for one in findings(rows)]
    assert told == [
        ("a", "race", (3, 9), 4),
        ("a", "race", (3, 10), 3),
        ("a", "result", (), 2),
        ("b", "result", (), 1),
    ]
    race = findings(rows)[0]
    assert race.message == "race on 0" and race.where == "2 x 3, 2 x 4, 2 x 5 and 1 more"
    assert findings(rows)[2].where == "2 x 1, 2 x 3" and findings(rows[1:2]) == []


def test_the_first_failure_speaks_for_a_row() -> None:
    assert (row("a", 1, RACE, WRONG).found_by, row("a", 1, RACE).reason) == ("race", "race on 0")
    assert (row("a", 1).ok, row("a", 1).found_by, row("a", 1).reason) == (True, "", "")


@pytest.mark.parametrize("trouble", [MissingTool("no g++"), CheckFailed("it does not compile")])
def test_what_cannot_be_observed_is_told_as_it_was_seen(
    cxx: None, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    def observe(*_: object, **__: object) -> None:
        raise trouble

    monkeypatch.setattr(failures, "observe", observe)
    source = render(checked("v1"))
    wrong = replace(source, text=source.text.replace("* inverse_sum", "* 2.0f"))
    (found,) = check(wrong, shapes=[(3, 33)], diagnose=True)
    assert [failure.kind for failure in found.failures] == ["result"]
    assert np.isfinite(found.max_rel_error)
