"""Files that are older, newer, another's, damaged, locked or full, and places that are read-only."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kgen.errors import MachineTrouble, UsageError
from kgen.store import connection
from kgen.store.columns import COLUMNS
from kgen.store.connection import FORMAT
from kgen.store.database import open_store
from kgen.store.measurement import Measurement
from tests.store.rows import FULL, PLAIN, row

NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a database that is not there yet."""
    return tmp_path / "results.sqlite"


@pytest.fixture
def old(path: Path) -> Path:
    """A file that an earlier kgen wrote."""
    written = sqlite3.connect(path)
    written.executescript(Path(__file__).with_name("format_1.sql").read_text(encoding="utf-8"))
    written.close()
    return path


def before(measurement: Measurement) -> Measurement:
    """Return what the earlier kgen kept of a measurement."""
    provenance = replace(measurement.provenance, commit="")
    absent = dict.fromkeys(("is_tied", "celsius_before", "celsius_after", "model_us"))
    return replace(measurement, provenance=provenance, l2="", dtype="float32", **absent)


def test_an_older_file_can_be_read_as_it_is(old: Path) -> None:
    content = old.read_bytes()
    with open_store(old, read_only=True) as store:
        assert store.select() == [before(PLAIN), before(FULL)]
        assert store.select(l2="warm") == []
        assert store.find({"l2": "", "model_us": None, "seed": 42}) == before(FULL)
    assert old.read_bytes() == content


def test_an_older_file_gets_the_new_columns(old: Path) -> None:
    with open_store(old) as store:
        store.add(FULL)
        assert store.select() == [before(PLAIN), before(FULL), FULL]
        assert store.select(l2="warm") == [FULL]
    found = {row[1] for row in sqlite3.connect(old).execute("PRAGMA table_info(measurements)")}
    assert found == {"id", *COLUMNS}


def test_a_file_with_more_columns_is_used_all_the_same(path: Path) -> None:
    open_store(path).close()
    with sqlite3.connect(path) as other:
        other.execute("ALTER TABLE measurements ADD COLUMN mood TEXT NOT NULL DEFAULT ''")
    with open_store(path) as store:
        store.add(FULL)
        assert store.select() == [FULL]


def test_a_file_of_a_newer_format_is_refused(path: Path) -> None:
    open_store(path).close()
    sqlite3.connect(path).execute(f"PRAGMA user_version = {FORMAT + 1}")
    for read_only in (False, True):
        with pytest.raises(UsageError, match=f"has format {FORMAT + 1}, of a newer kgen"):
            open_store(path, read_only=read_only)


@pytest.mark.parametrize("content", [b"x", b"hello\n", b"\0" * 5000, b"SQLite format 3"])
@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_not_a_database_is_refused_and_left(
    path: Path, content: bytes, read_only: bool
) -> None:
    path.write_bytes(content)
    with pytest.raises(UsageError, match="is not a database; name another file"):
        open_store(path, read_only=read_only)
    assert path.read_bytes() == content and list(path.parent.iterdir()) == [path]


def test_a_database_of_another_program_is_refused_and_left(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE cookies (id)")
    content = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(UsageError, match="is a database of another program"):
            open_store(path, read_only=read_only)
    assert path.read_bytes() == content


def test_a_store_for_reading_takes_no_rows(path: Path) -> None:
    open_store(path).close()
    with open_store(path, read_only=True) as store:
        with pytest.raises(UsageError, match="cannot be written"):
            store.add(PLAIN)
        assert store.select() == []


def test_an_empty_file_is_filled_but_not_read(path: Path) -> None:
    path.touch()
    with pytest.raises(UsageError, match="is an empty database"):
        open_store(path, read_only=True)
    with open_store(path) as store:
        store.add(PLAIN)
        assert store.select() == [PLAIN]


def test_a_missing_file_is_not_made_by_reading(path: Path) -> None:
    with pytest.raises(UsageError, match="there is no database"):
        open_store(path, read_only=True)
    assert not path.exists()


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        (".", " is not a file; name a file for the database"),
        ("pipe", " is not a file; name a file for the database"),
        ("file/results.sqlite", " cannot be opened: "),
        ("n" * 300, " cannot be opened: File name too long"),
        (
            "/proc/results.sqlite",
            " cannot be opened: it or its folder is missing, or not yours to use",
        ),
        ("/proc/absent/results.sqlite", " cannot be opened: No such file or directory"),
    ],
)
def test_a_place_that_cannot_hold_a_database(tmp_path: Path, place: str, sentence: str) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError) as refusal:
        open_store(tmp_path / place)
    assert f"{tmp_path / place}{sentence}" in str(refusal.value)


@pytest.mark.parametrize(
    ("offset", "sentence"),
    [
        (100, "is damaged (database disk image is malformed); move it away"),
        (16384, "is damaged (database disk image is malformed); move it away"),
    ],
)
def test_a_damaged_file_is_told(path: Path, offset: int, sentence: str) -> None:
    with open_store(path) as store:
        for _ in range(20):
            store.add(row(reason="x" * 1000))
    content = bytearray(path.read_bytes())
    content[offset : offset + 3000] = b"\xfe" * 3000
    path.write_bytes(content)
    with pytest.raises(UsageError) as refusal, open_store(path, read_only=True) as store:
        store.select()
    assert f"{path} {sentence}" in str(refusal.value)


def test_text_that_is_none_is_damage(path: Path) -> None:
    with open_store(path) as store:
        store.add(row(reason="here"))
    path.write_bytes(path.read_bytes().replace(b"here", b"\xffere"))
    with open_store(path) as store, pytest.raises(UsageError, match="is damaged"):
        store.select()


def test_a_closed_store_is_a_mistake_of_the_caller(path: Path) -> None:
    store = open_store(path)
    store.close()
    with pytest.raises(sqlite3.ProgrammingError):
        store.select()


def test_opening_a_file_again_keeps_its_locks(path: Path) -> None:
    with open_store(path) as store:
        store._connection.execute("PRAGMA journal_mode = DELETE")
        store._connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(UsageError, match="is locked"):
            open_store(path, read_only=True, timeout_s=0)
        program = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('PRAGMA user_version')"
        other = subprocess.run([sys.executable, "-c", program, path], stderr=subprocess.PIPE)
        assert b"database is locked" in other.stderr


def test_a_locked_file_is_waited_for_then_told(path: Path) -> None:
    open_store(path).close()
    holder = sqlite3.connect(path, isolation_level=None)
    with open_store(path, timeout_s=0.1) as store:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(UsageError, match="is locked by another process"):
            store.add(PLAIN)
        assert store.select() == []  # readers need not wait
        holder.execute("COMMIT")
        store.add(PLAIN)
        assert store.select() == [PLAIN]


def test_a_new_file_that_another_process_holds(path: Path) -> None:
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(UsageError, match="is locked by another process"):
        open_store(path, timeout_s=0.1)


@pytest.mark.parametrize("moment", range(1, 12))
def test_another_process_makes_the_file_at_any_moment(
    path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    class Interrupted(sqlite3.Connection):
        """Lets the other process go first, just before one of the statements."""

        statements = 0

        def execute(self, *request: Any) -> sqlite3.Cursor:
            self.statements += 1
            if self.statements == moment:
                with suppress(UsageError):  # while this one writes, it has to wait
                    open_store(path, timeout_s=0).close()
            return super().execute(*request)

    def connect(path: Path, query: str, timeout_s: float) -> sqlite3.Connection:
        monkeypatch.undo()  # nothing interrupts the other
        return sqlite3.connect(path, isolation_level=None, factory=Interrupted)

    monkeypatch.setattr(connection, "_connect", connect)
    with open_store(path) as store:
        store.add(FULL)
        assert store.select() == [FULL]


def test_a_new_file_that_another_process_soon_releases(path: Path) -> None:
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    threading.Timer(0.2, holder.rollback).start()
    with open_store(path) as store:
        store.add(PLAIN)
        assert store.select() == [PLAIN]


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let this process write no file beyond a size in bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_fails_is_told_and_loses_nothing_else(path: Path) -> None:
    with open_store(path) as store:
        store.add(FULL)
        with (
            files_of_at_most(1000),
            pytest.raises(MachineTrouble, match="cannot be read or written"),
        ):
            store.add(PLAIN)
        store.add(PLAIN)
    with open_store(path) as store:
        assert store.select() == [PLAIN, FULL]


def test_a_full_disk_is_told_and_loses_nothing_else(path: Path) -> None:
    with open_store(path) as store:
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        added = 0
        with pytest.raises(MachineTrouble, match="no space is left for "):
            for _ in range(99):
                store.add(row(reason="x" * 3000))
                added += 1
        assert added and len(store.select()) == added


def test_a_disk_too_full_for_a_new_file(path: Path) -> None:
    with files_of_at_most(1000), pytest.raises(MachineTrouble, match="cannot be read or written"):
        open_store(path)


def test_too_few_files_are_not_the_folders_fault(path: Path) -> None:
    _, most = before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, most))
    try:
        with pytest.raises(MachineTrouble, match=r"cannot be opened: .*\(ulimit -n\)"):
            open_store(path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder and its files read-only, and be a user who has to mind."""
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    is_root = os.geteuid() == 0
    try:
        if is_root:
            os.seteuid(NOBODY)
        if not os.access(folder, os.R_OK, effective_ids=True):
            pytest.skip(f"{folder} is in a folder that only root may enter")
        yield
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o755)


def test_a_read_only_folder_is_read_and_not_added_to(folder: Path) -> None:
    with open_store(folder / "db") as store:
        store.add(FULL)
    with read_only(folder):
        with open_store(folder / "db", read_only=True) as store:
            assert store.select() == [FULL]
        with pytest.raises(UsageError, match="db cannot be written: it or its folder is read-only"):
            open_store(folder / "db")
        with pytest.raises(UsageError, match="it or its folder is missing, or not yours to use"):
            open_store(folder / "other")


def test_a_read_only_folder_with_rows_of_a_killed_process(folder: Path, path: Path) -> None:
    with open_store(path) as store:
        store.add(FULL)
        for name in ("results.sqlite", "results.sqlite-wal"):  # as a killed process leaves them
            shutil.copy(path.with_name(name), folder)
    with read_only(folder), pytest.raises(UsageError, match="copy both to where you may write"):
        open_store(folder / path.name, read_only=True)
    with open_store(folder / path.name, read_only=True) as store:
        assert store.select() == [FULL]
