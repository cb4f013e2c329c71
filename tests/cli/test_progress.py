"""What a sweep shows while it runs: without a terminal plain lines, now and then."""

from __future__ import annotations

import pytest

from kgen.cli import progress
from kgen.cli.progress import SweepProgress, duration
from kgen.store.measurement import Outcome
from tests.sweep.made import made, modelled


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, as the progress sees it; tests set it."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def rows(number: int, **fields: object) -> list[object]:
    return [modelled("v5", 10 - n / 100, cols=n + 1, **fields) for n in range(number)]


def test_a_line_is_written_for_every_tenth_and_every_ten_seconds(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with SweepProgress(100) as shown:
        for row in rows(25):
            shown.finished(row)
        lines = capsys.readouterr().err.splitlines()
        assert lines[0] == "kgen: compiling, 0 of 100 candidates are done"
        assert [line.split()[2] for line in lines[1:]] == ["10", "20"]
        clock[0] += 10
        shown.sampled("v5", [1.0])
        shown.sampled("v5", [1.0])
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("kgen: timed v5, 25 of 100 candidates are done, best: v5 9.76 us")
        assert line.isprintable()


def test_what_is_left_follows_from_what_was_measured(clock: list[float]) -> None:
    """Three of 1, 1 and 10 seconds' work: the second took two seconds, so the third takes 20."""
    some = rows(3)
    work = {("v5", 1024, cols): seconds for cols, seconds in ((1, 1.0), (2, 1.0), (3, 10.0))}
    shown = SweepProgress(3, work)
    clock[0] = 50  # compiling
    shown.finished(some[0])
    assert shown.left == ""
    clock[0] += 2
    shown.finished(some[1])
    assert shown.left == "about 20 s left" and shown.told == "2 of 3 candidates are done"
    clock[0] += 20
    shown.finished(some[2])
    assert shown.left_s == 0


def test_pruned_ones_and_copies_say_nothing_of_the_pace(clock: list[float]) -> None:
    work = {("v5", 1024, cols): 1.0 for cols in (1, 2, 3)}
    shown = SweepProgress(3, work)
    shown.finished(rows(1, outcome=Outcome.PRUNED)[0])
    shown.finished(made("copy_four", 1, kind="copy"))
    assert shown.left_s is None and shown.done == 1 and len(shown.rows) == 2


def test_of_few_trials_only_these_are_left(clock: list[float]) -> None:
    work = {("v5", 1024, cols + 1): 1.0 for cols in range(100)}
    shown = SweepProgress(4, work)
    for row in rows(2):
        clock[0] += 1
        shown.finished(row)
    assert shown.left_s == pytest.approx(2)


def test_durations() -> None:
    assert list(map(duration, (3.4, 89, 91, 6000))) == ["3 s", "89 s", "2 min", "1.7 h"]
