"""`kgen results`: the database's rows as a table, JSON and CSV."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import kgen.cli.results
from kgen.store.columns import COLUMNS
from kgen.store.database import open_store
from kgen.store.export import objects, read_json
from kgen.store.measurement import Kind, Outcome
from tests.cli.conftest import Ended
from tests.store.rows import FULL, PLAIN, row

Call = Callable[..., Ended]

FAILED = row(
    variant="mine.cu",
    kind=Kind.FILE,
    rows=8,
    cols=257,
    outcome=Outcome.FAILED,
    reason="it does not end\nline 3",
)


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database with a few rows, which is also the default."""
    path = tmp_path / "my.sqlite"
    with open_store(path) as store:
        for measurement in (PLAIN, FAILED, FULL):
            store.add(measurement)
    monkeypatch.setenv("KGEN_DB", str(path))
    return path


def test_the_table_has_the_newest_last(call: Call, db: Path) -> None:
    header, plain, failed, full = call("results").rows()
    assert " ".join(header) == (
        "variant shape type device protocol/l2 median us spread % GB/s % of copy speed-up outcome date (UTC)"
    )
    assert " ".join(plain) == "v7 1024 x 4096 NVIDIA H200 ok 2026-11-30 08:13"
    assert " ".join(failed) == (
        "mine.cu 8 x 257 NVIDIA H200 failed: it does not end 2026-11-30 08:13"
    )
    assert " ".join(full) == (
        "v7:items=4,threads=512 1024 x 4096 bfloat16 to float32 NVIDIA H200 steady/warm 10.00 3.0 3,355 90 1.25 vs v1 "
        "ok: clocks fell 2026-12-01 10:00"
    )


def test_a_long_reason_is_cut(call: Call, db: Path) -> None:
    with open_store(db) as store:
        store.add(row(variant="v1", outcome=Outcome.WRONG, reason="word " * 99))
    words = call("results", "--variant", "v1").out.split()
    assert (words.count("word"), words.count("...")) == (11, 1)


def test_a_long_table_is_cut_to_the_newest(
    call: Call, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kgen.cli.results, "_MOST_IN_TABLE", 2)
    cut = call("results").out
    assert cut.startswith("the newest 2; --limit N shows N")
    assert cut.splitlines()[1:] == call("results", "--limit", 2).out.splitlines()
    assert len(call("results", "--limit", 3).out.splitlines()) == 4
    assert len(call("results", "--json").json) == 3


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ("--variant v7", [PLAIN]),
        ("--variant v7*", [PLAIN, FULL]),
        ("--variant v7:threads=512,items=4", [FULL]),
        ("--variant *.cu", [FAILED]),
        ("--rows 8", [FAILED]),
        ("--cols 4096", [PLAIN, FULL]),
        ("--device *H200 --outcome failed", [FAILED]),
        ("--run run-1", [PLAIN, FAILED]),
        ("--run latest", [FULL]),
        ("--kind file", [FAILED]),
        ("--protocol steady", [FULL]),
        ("--l2 warm", [FULL]),
        ("--since 2026-12-01", [FULL]),
        ("--since 2026-12-01T10:00:01", []),
        ("--dtype bfloat16", [FULL]),
        ("--dtype float32 --out-dtype float32", [PLAIN, FAILED]),
        ("--limit 2", [FAILED, FULL]),
        ("", [PLAIN, FAILED, FULL]),
    ],
)
def test_filters(call: Call, db: Path, arguments: str, found: list[object]) -> None:
    ended = call("results", "--db", db, "--json", *arguments.split())
    assert (ended.code, ended.json) == (0, objects(found))  # type: ignore[arg-type]


def test_csv(call: Call, db: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(call("results", "--csv").out)))
    assert [row["variant"] for row in rows] == ["v7", "mine.cu", "v7:items=4,threads=512"]


def test_files_are_written_as_their_names_say(call: Call, db: Path, tmp_path: Path) -> None:
    assert call("results", "--out", "a/x.json").out == "wrote 3 measurements to a/x.json\n"
    assert read_json(tmp_path / "a" / "x.json") == [PLAIN, FAILED, FULL]
    call("results", "--out", "x.csv")
    assert (tmp_path / "x.csv").read_text() == call("results", "--csv").out
    call("results", "--json", "--out", "results")
    assert (tmp_path / "results").read_text() == call("results", "--json").out


def test_what_fits_nothing(call: Call, db: Path) -> None:
    ended = call("results", "--variant", "v9")
    assert (ended.code, ended.out) == (0, f"{db} has no such measurements.\n")
    assert call("results", "--variant", "v9", "--json").json == []
    assert call("results", "--variant", "v9", "--csv").out == ",".join(COLUMNS) + "\n"


def test_before_anything_was_measured(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGEN_DB", str(tmp_path / "none" / "db"))
    ended = call("results")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"Nothing has been measured yet: there is no {tmp_path}/none/db.\n"
    assert call("results", "--json").json == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--db absent.sqlite", "there is no database absent.sqlite"),
        ("--db junk", "junk is not a database"),
        ("--db .", ". is not a file"),
        ("--json --csv", "--json and --csv exclude each other"),
        ("--out results.txt", "--out results.txt: name a .json or .csv, or add --json or --csv"),
        ("--out junk/x.json", "junk/x.json cannot be written: "),
        ("--rows 99999999999999999999", "whole numbers of up to 64 bits"),
    ],
)
def test_a_wrong_request(
    call: Call, db: Path, tmp_path: Path, arguments: str, sentence: str
) -> None:
    (tmp_path / "junk").write_text("a letter")
    content = db.read_bytes()
    ended = call("results", *arguments.split())
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("kgen: ") and ended.err.count("\n") == 1
    assert sentence in ended.err
    assert not (tmp_path / "absent.sqlite").exists() and db.read_bytes() == content


@pytest.mark.parametrize("arguments", ["--outcome good", "--since yesterday", "--limit 0"])
def test_a_command_line_that_cannot_be_parsed(call: Call, db: Path, arguments: str) -> None:
    assert call("results", *arguments.split()).code == 2


def test_other_commands_load_no_database() -> None:
    program = (
        "import atexit, sys\n"
        "atexit.register(lambda: sys.stderr.write(str('sqlite3' in sys.modules)))\n"
        "from kgen.cli import main; sys.argv = ['kgen', 'list']; main()"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "False")


def test_pruned_rows_are_counted_and_listed_when_asked_for(call: Call, db: Path) -> None:
    with open_store(db) as store:
        store.add(row(variant="v2", rows=9, outcome=Outcome.PRUNED, reason="spills"))
    told = "1 pruned and not listed; --pruned lists them, too."
    shown = call("results").out
    assert told in shown and "v2" not in shown
    assert call("results", "--limit", 1).rows()[1][0] == FULL.variant
    for asked in (("--pruned",), ("--outcome", "pruned")):
        shown = call("results", *asked).out
        assert "pruned: spills" in shown and told not in shown
    assert len(call("results", "--json").json) == 4
    assert call("results", "--rows", 9).out == (
        f"{db} has no such measurements but pruned ones.\n{told}\n"
    )


def test_what_was_modelled_stands_apart_from_what_was_timed(call: Call, db: Path) -> None:
    assert "model us" not in call("results").out
    with open_store(db) as store:
        store.add(row(variant="v5", model_us=7.5))
    header, line = call("results", "--variant", "v5").rows()
    assert " ".join(header) == "variant shape device model us outcome date (UTC)"
    assert line[6:] == ["7.50", "ok", "2026-11-30", "08:13"]
