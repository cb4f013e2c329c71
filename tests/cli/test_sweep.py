"""The command that sweeps, on the CPU: its rows, continuing, and what a user can get wrong."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kgen.cli.examples import EXAMPLES
from kgen.specs.types import find_types, types_of
from kgen.specs.versions import VERSIONS
from kgen.store.database import open_store
from kgen.store.export import read_json
from kgen.store.measurement import Measurement
from kgen.sweep.estimate import Pace
from kgen.sweep.point import Point
from tests.cli.conftest import Ended

Call = Callable[..., Ended]

SMALL = "sweep --on cpu --rows 3 --cols 5 --variants v5 --axis threads=32,64".split()


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The database that the commands use."""
    path = tmp_path / "rows.sqlite"
    monkeypatch.setenv("KGEN_DB", str(path))
    return path


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No candidate is tried for an estimate."""
    monkeypatch.setattr("kgen.sweep.trial.try_some", lambda points, how: Pace())


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

    monkeypatch.setattr("kgen.sweep.measure.run_jobs", interrupted)
    ended = call(*SMALL)
    assert ended.code == 130
    assert ended.err.splitlines()[-1] == (
        "kgen: ended by Ctrl-C: 0 of 2 candidates are done; the same command goes on from there"
    )


@pytest.mark.usefixtures("cxx")
def test_an_interrupt_while_kernels_run_ends_them_and_says_how_far_it_came(
    db: Path, tmp_path: Path
) -> None:
    """The third candidate takes minutes, so the signal finds it at work."""
    slow = "sweep --on cpu --rows 3,400000 --cols 5 --variants v5 --axis threads=32,1024"
    command = [sys.executable, "-m", "kgen", *slow.split(), "--no-prune"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as ran:
        assert ran.stderr
        lines = iter(ran.stderr.readline, "")
        assert any("2 of 4 candidates are done" in line for line in lines)
        ran.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert any("ended by Ctrl-C: 2 of 4 candidates are done" in line for line in lines)
        assert (
            time.monotonic() - began < 5
        )  # less than one on a machine that has nothing else to do
        assert ran.wait(20) == 130


@pytest.mark.usefixtures("cxx", "untried")
def test_a_dry_run_leaves_out_what_is_stored(call: Call, db: Path) -> None:
    fresh = call(*SMALL, "--dry-run", "--json").json
    assert (fresh["stored"], fresh["to_measure"]) == (0, 2) and not db.exists()
    call(*SMALL[:-1], "threads=64")
    partly = call(*SMALL, "--dry-run", "--json").json
    assert (partly["stored"], partly["to_measure"], partly["kernels"]) == (1, 1, 1)
    assert "stored already 1" in " ".join(call(*SMALL, "--dry-run").out.split())
    assert len(rows_in(db)) == 1


@pytest.mark.usefixtures("untried")
@pytest.mark.parametrize("options", ["--axis threads=64", "--where rows<9 --cols 9"])
def test_without_variants_all_versions_are_meant(call: Call, db: Path, options: str) -> None:
    ended = call("sweep", "--dry-run", "--json", *options.split())
    assert ended.code == 0 and f"all {len(VERSIONS)} versions" in ended.err
    assert ended.json["combinations"] == len(VERSIONS)


@pytest.mark.usefixtures("untried")
@pytest.mark.parametrize("options", ["--rows 3 --cols 5", "--cols 9"])
def test_with_shapes_alone_what_is_likely_to_be_fast_is_meant(
    call: Call, db: Path, options: str
) -> None:
    ended = call("sweep", "--dry-run", "--json", *options.split())
    found = ended.json
    assert ended.code == 0 and 16 <= found["to_measure"] <= 80
    every = found["points"] + found["unlikely"]
    told = f"so the {found['points']} likeliest of {every:,} candidates"
    assert told in ended.err and " s on the GPU" in ended.err


@pytest.mark.usefixtures("untried")
@pytest.mark.parametrize(
    "options", ["--rows 3 --cols 5", "--variants v5,v7", "--axis threads=64", "--where rows>0"]
)
def test_a_sweep_is_of_the_type_that_is_asked_for(
    call: Call, db: Path, options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Point] = []
    monkeypatch.setattr(
        "kgen.cli.sweep.print_plan", lambda planned, *rest: found.extend(planned.points)
    )
    asked = ("--dtype", "bfloat16", "--out-dtype", "float32", "--dry-run")
    assert call("sweep", *options.split(), *asked).code == 0
    assert found and {types_of(it.spec) for it in found} == {find_types("bfloat16", "float32")}


@pytest.mark.usefixtures("untried")
def test_the_examples_of_the_help_work(call: Call, db: Path) -> None:
    examples = [example for example, _ in EXAMPLES["sweep"]]
    skipped = ("--all", ".cu")  # what takes seconds to plan; a file that is not there
    for example in (one for one in examples if not any(word in one for word in skipped)):
        assert call(*shlex.split(example), "--dry-run").code == 0


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
        ("--cols 5 --dtype float8", "dtype=float8 is not a choice; did you mean"),
        ("--cols 5 --dtype float64 --out-dtype float32", "dtype=float64 with out_dtype=float32"),
        ("--variants v5 --dtype float16 --axis dtype=float16", "dtype is given as an option and"),
        ("--variants v5:dtype=float16 --dtype float16", "v5:dtype=float16 sets dtype, and so does"),
        ("--variants v5,v7:dtype=float16", "v5 of float32, v7:dtype=float16 of float16: what"),
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
