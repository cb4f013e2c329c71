"""`check` with memory and races: what the results do not show fails the row, with the line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kgen.errors import CheckFailed
from kgen.evidence.check import check, observed_rows
from kgen.sources.render import render
from kgen.sources.source import Source
from kgen.specs.variants import checked

pytestmark = pytest.mark.slow

BETWEEN = "__syncthreads();  // all have read the result before the next reduction writes there"
# The order of threads in which the results do not show the race.
IN_ORDER = ("in_order",)
SHAPES = [(5, 257), (5, 1028)]


def mutant_of(variant: str, old: str, new: str) -> Source:
    source = render(checked(variant).resolve(257))
    assert source.text.count(old) == 1
    return replace(source, text=source.text.replace(old, new))


@pytest.mark.parametrize("variant", ["c1", "v2", "v4"])
def test_a_race_that_does_not_show_in_the_results(variant: str) -> None:
    mutant = mutant_of(variant, BETWEEN, "")
    assert all(row.ok for row in check(mutant, shapes=SHAPES, schedules=IN_ORDER))
    assert all(row.ok for row in check(mutant, shapes=SHAPES, schedules=IN_ORDER, memory=True))
    for row in check(mutant, shapes=SHAPES, schedules=IN_ORDER, races=True):
        assert not row.ok
        assert row.reason.startswith(f"softmax_{variant}.cu:") and "race on element 0" in row.reason


def test_a_read_past_the_end_that_does_not_show_in_the_results() -> None:
    reads_on = mutant_of("v1", "max = -FLT_MAX;", "max = fminf(-FLT_MAX, x_row[cols]);")
    assert all(row.ok for row in check(reads_on, shapes=[(2, 33)]))
    (row,) = check(reads_on, shapes=[(2, 33)], memory=True)
    assert "read out of bounds, 0 bytes past the end of x" in row.reason


@pytest.mark.parametrize("variant", ["v5", "v8", "v9", "t1", "k1", "cpu"])
def test_correct_variants_pass(variant: str) -> None:
    rows = check(checked(variant), shapes=[(20, 33), (20, 257)], memory=True, races=True)
    assert [row.reason for row in rows if not row.ok] == []


def test_a_few_rows_are_observed() -> None:
    assert observed_rows(checked("v5")) == 3
    assert observed_rows(checked("v8")) == 17
    assert observed_rows(checked("v9:grid=4")) == 5
    # Two blocks where there may be any number, four rows each at a time.
    assert observed_rows(checked("v5:threads_per_row=64,row_loop=grid_stride")) == 9


def test_the_command_reports_the_line_of_an_edited_file(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from kgen.cli.app import app

    mutant = mutant_of("c1", BETWEEN, "")
    file = tmp_path / "mine.cu"
    file.write_text(mutant.text)
    shape = ["--rows", "4", "--cols", "257", "--schedule", "in_order"]
    assert CliRunner().invoke(app, ["check", str(file), *shape]).exit_code == 0
    result = CliRunner().invoke(app, ["check", str(file), *shape, "--races"])
    assert isinstance(result.exception, CheckFailed)
    assert f"{file}:" in str(result.exception) and "race on element 0" in str(result.exception)
