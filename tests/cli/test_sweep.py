"""The command that sweeps, on the CPU: its rows, continuing, and what a user can get wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kgen.store.database import open_store
from kgen.store.export import read_json
from kgen.store.measurement import Measurement
from tests.cli.conftest import Ended

Call = Callable[..., Ended]

SMALL = "sweep --on cpu --rows 3 --cols 5 --variants v5 --axis threads=32,64".split()


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The database that the commands use."""
    path = tmp_path / "rows.sqlite"
    monkeypatch.setenv("KGEN_DB", str(path))
    return path


def rows_in(db: Path) -> list[Measurement]:
    with open_store(db, read_only=True) as store:
        return store.select()


@pytest.mark.usefixtures("cxx")
@pytest.mark.parametrize("options", [(), ("--no-prune",)])
def test_the_same_command_measures_nothing_twice(
    call: Call, db: Path, options: tuple[str, ...]
) -> None:
    first = call(*SMALL, *options)
    again = call(*SMALL, *options)
    assert first.code == again.code == 0 and first.out == again.out
    assert [row.variant for row in rows_in(db)] == ["v5:threads=32", "v5:threads=64"]


@pytest.mark.usefixtures("cxx")
def test_rows_of_a_benchmark_do_not_stand_for_those_of_a_sweep(call: Call, db: Path) -> None:
    """They are counted, but have no cost, and nothing would be left to win."""
    assert call("bench", "v5:threads=32", "--on", "cpu", "--rows", 3, "--cols", 5).code == 0
    ended = call(*SMALL)
    assert ended.code == 0 and "2 ok" in ended.out
    assert len(rows_in(db)) == 3


@pytest.mark.usefixtures("cxx")
def test_rows_are_in_order_whichever_was_measured_first(
    call: Call, db: Path, tmp_path: Path
) -> None:
    """The first of equals wins: a sweep that goes on has the answer of one that was not ended."""
    call(*SMALL[:-1], "threads=64")
    call(*SMALL, "--out", "rows.json")
    rows = read_json(tmp_path / "rows.json")
    assert [row.variant for row in rows] == ["v5:threads=32", "v5:threads=64"]


@pytest.mark.usefixtures("cxx")
def test_why_nothing_can_be_compared(call: Call, db: Path) -> None:
    ended = call(*"sweep --on cpu --rows 3 --cols 5 --variants cpu".split())
    assert ended.code == 1
    assert "1 ok: " in ended.err and "and only kernels are counted at 3 x 5" in ended.err


def test_an_interrupt_before_the_first_row_is_no_failure(
    call: Call, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kgen.sweep.run.run_jobs", interrupted)
    ended = call(*SMALL)
    assert ended.code == 130 and not ended.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--variants v5 --rows ,", "--rows ,: ',' is not a number; write it as 257,4096"),
        ("--variants v5 --rows 0", "rows=[0]: a sweep needs whole numbers from 1 on"),
        ("--variants v5 --cols 5,x", "--cols 5,x: 'x' is not a number"),
        ("--variants v5 --axis threads=32 --axis threads_per_block=64", "--axis threads is given"),
        ("--variants v5 --axis thread=4", "there is no axis 'thread'; did you mean 'threads'"),
        ("--variants v5 --axis threads", "'threads' gives no values; write it as threads=128,256"),
        ("--variants v5:threads=32 --axis threads=64", "v5:threads=32 sets threads, and so does"),
        ("--variants v5 --search halve", "there is no search 'halve'; did you mean 'halving'?"),
        ("--variants v5 --on mars --dry-run", "on='mars': kernels run on cpu or gpu"),
        ("--variants v5 --on mars --local-workers 2", "on='mars': kernels run on cpu or gpu"),
        ("--all --variants v5", "--all is every combination; leave --variants, --axis and files"),
        ("", "name what to sweep: --variants v5,v7, a study file, or --all"),
        ("absent.toml", "absent.toml cannot be read: No such file or directory"),
    ],
)
def test_what_is_wrong_is_said(call: Call, db: Path, options: str, words: str) -> None:
    ended = call("sweep", *options.split())
    assert ended.code == 2 and ended.err.startswith(f"kgen: {words}")
    assert not db.exists()
