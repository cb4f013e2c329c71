"""Opening the database's file: whose it is, its format, and what to say when it fails.

The file is in SQLite's WAL mode: readers never wait, and writers wait for each other. Its header
tells that it is kgen's (application_id) and its format (user_version).
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from kgen.errors import MachineTrouble, UsageError
from kgen.machine_trouble import telling_trouble, trouble_of
from kgen.store.columns import COLUMNS, Column

APPLICATION_ID = int.from_bytes(b"kgen", "big")
_FOREIGN = "{path} is not a database; name another file"

# One table, a row a measurement, with the provenance in every row: a row is then written whole by
# one statement, read without a join, and still complete when it is copied into another file.
# Each step leads to the next format. A column added to the dataclasses needs none.
_STEPS = (
    (
        f"CREATE TABLE measurements (id INTEGER PRIMARY KEY, "
        f"{', '.join(column.declaration for column in COLUMNS.values())})",
        "CREATE INDEX by_candidate ON measurements (variant, rows, cols, source_hash)",
        "CREATE INDEX by_run ON measurements (run)",
        "CREATE INDEX by_time ON measurements (measured_at)",
        f"PRAGMA application_id = {APPLICATION_ID}",
    ),
    (
        # What runs have in flight: rows that wait for their samples, and the samples so far.
        "CREATE TABLE pending (run TEXT, variant TEXT, rows INTEGER, cols INTEGER, l2 TEXT, "
        "process INTEGER, host TEXT, measurement TEXT, PRIMARY KEY (run, variant, rows, cols, l2))",
        "CREATE TABLE samples (run TEXT, variant TEXT, rows INTEGER, cols INTEGER, l2 TEXT, "
        "round INTEGER, us REAL, PRIMARY KEY (run, variant, rows, cols, l2, round))",
    ),
)
FORMAT = len(_STEPS)


def connect(path: Path, timeout_s: float) -> sqlite3.Connection:
    """Open a file for adding, making it and its folder when there is none, and upgrade it.

    Raises UsageError when that fails, or the file is of a newer format or not kgen's.
    """
    with telling(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _refuse_foreign_files(path)
        with _closed_on_failure(_connect(path, "mode=rwc", timeout_s)) as connection:
            if _format(path, connection) < FORMAT or _missing_columns(connection):
                _use_wal(connection, timeout_s)
                _upgrade(path, connection)
    return connection


def connect_to_read(path: Path, timeout_s: float) -> sqlite3.Connection:
    """Open a file that is there for reading only; nothing of it changes.

    Raises UsageError as `connect` does, and when there is no file or it holds no measurements.
    """
    with telling(path):
        if not path.exists():
            raise UsageError(f"there is no database {path}; name one that measurements went to")
        _refuse_foreign_files(path)
        query = "mode=rw" if _can_share(path, timeout_s) else "immutable=1"
        with _closed_on_failure(_connect(path, query, timeout_s)) as connection:
            if _format(path, connection) == 0:
                raise UsageError(f"{path} is an empty database, not one of kgen's measurements")
            connection.execute("PRAGMA query_only = 1")
    return connection


def _can_share(path: Path, timeout_s: float) -> bool:
    """Whether a reader can share the file with writers, which takes a file beside it.

    Where that file cannot be made, and writers left none of their own, nobody is writing. Raises
    UsageError when they did, since rows may be in it.
    """
    with closing(_connect(path, "mode=rw", timeout_s)) as connection:
        try:
            _pragma(connection, "user_version")
        except sqlite3.OperationalError as error:
            if _code(error) not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
                raise
            log = path.with_name(f"{path.name}-wal")
            if log.exists():
                raise UsageError(
                    f"{path} has rows in {log.name} that take a folder which is not read-only to "
                    "read; copy both to where you may write"
                ) from None
            return False
    return True


def _connect(path: Path, query: str, timeout_s: float) -> sqlite3.Connection:
    # Without an isolation level, every statement is its own transaction.
    uri = f"{path.absolute().as_uri()}?{query}"
    return sqlite3.connect(uri, uri=True, timeout=timeout_s, isolation_level=None)


@contextmanager
def _closed_on_failure(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    try:
        yield connection
    except BaseException:
        connection.close()
        raise


def _refuse_foreign_files(path: Path) -> None:
    """Raise UsageError for what SQLite would wait for, or overwrite: it takes one byte for none.

    The file is not opened: closing it would end the locks that this process has on it.
    """
    if not path.exists():
        return
    if not path.is_file():
        raise UsageError(f"{path} is not a file; name a file for the database")
    if path.stat().st_size == 1:
        raise UsageError(_FOREIGN.format(path=path))


def _format(path: Path, connection: sqlite3.Connection) -> int:
    """Return the file's format, 0 for an empty file. Raises UsageError when kgen cannot use it."""
    # Another process may fill an empty file between these lines: emptiness is asked for first.
    is_empty = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    application = _pragma(connection, "application_id")
    if is_empty and application == 0:
        return 0
    if application != APPLICATION_ID:
        raise UsageError(f"{path} is a database of another program; name another file")
    found: int = _pragma(connection, "user_version")
    if found > FORMAT:
        raise UsageError(
            f"{path} has format {found}, of a newer kgen; this one knows formats up to {FORMAT}: "
            "upgrade kgen or name another file"
        )
    return found


def _pragma(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _missing_columns(connection: sqlite3.Connection) -> list[Column]:
    found = {row[1] for row in connection.execute("PRAGMA table_info(measurements)")}
    return [column for name, column in COLUMNS.items() if name not in found]


def full_table(connection: sqlite3.Connection) -> str:
    """Return what to select from: a table with all columns, also where an older file lacks some."""
    defaults = [f', {column.literal} AS "{column.name}"' for column in _missing_columns(connection)]
    return f"(SELECT *{''.join(defaults)} FROM measurements)" if defaults else "measurements"


def _use_wal(connection: sqlite3.Connection, timeout_s: float) -> None:
    # Here SQLite itself does not wait for others who are doing the same.
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _upgrade(path: Path, connection: sqlite3.Connection) -> None:
    with all_or_nothing(connection):
        for step in _STEPS[_format(path, connection) :]:  # another process may have done it
            for statement in step:
                connection.execute(statement)
        for column in _missing_columns(connection):
            connection.execute(f"ALTER TABLE measurements ADD COLUMN {column.declaration}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")


@contextmanager
def all_or_nothing(connection: sqlite3.Connection) -> Iterator[None]:
    """Make one transaction of the block; an exception undoes it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def telling(path: Path) -> Iterator[None]:
    """Turn what goes wrong with the database at `path` into a UsageError.

    Raises MachineTrouble instead where the machine lacks space, memory or the like.
    """
    try:
        yield
    except OverflowError:
        raise UsageError(f"{path} holds whole numbers of up to 64 bits; one is larger") from None
    except OSError as error:
        if lack := trouble_of(error):
            raise MachineTrouble(f"{path} cannot be opened: {lack}") from None
        raise UsageError(f"{path} cannot be opened: {error.strerror}") from None
    except sqlite3.ProgrammingError:  # the module's own complaint of how it is called
        raise
    except UnicodeDecodeError:  # of the schema
        raise UsageError(_NOT_TEXT.format(path=path)) from None
    except sqlite3.DatabaseError as error:
        code = _code(error)
        if code == sqlite3.SQLITE_CANTOPEN:
            with telling_trouble(f"{path} cannot be opened"):
                os.close(os.open(os.devnull, os.O_RDONLY))  # fails where it is for lack of files
        sentence = _SENTENCES.get(code, "{path} cannot be used: {error}")
        kind = MachineTrouble if code in _OF_THE_MACHINE else UsageError
        raise kind(sentence.format(path=path, error=error)) from None


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code, 0 where the module found the fault itself."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


_OF_THE_MACHINE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM)
_NOT_TEXT = "{path} is damaged (a text is not UTF-8); move it away and start another file"
_SENTENCES = {
    0: _NOT_TEXT,
    sqlite3.SQLITE_BUSY: "{path} is locked by another process; end what holds it and try again",
    sqlite3.SQLITE_CANTOPEN: "{path} cannot be opened: it or its folder is missing, or not "
    "yours to use",
    sqlite3.SQLITE_CORRUPT: "{path} is damaged ({error}); move it away and start another file",
    sqlite3.SQLITE_FULL: "no space is left for {path}; free some, or name a file on another disk",
    sqlite3.SQLITE_IOERR: "{path} cannot be read or written ({error}); the disk may be full, over "
    "a quota or on a network: name a file on another disk",
    sqlite3.SQLITE_NOMEM: "no memory is left to use {path}: free some, or raise its limit",
    sqlite3.SQLITE_NOTADB: _FOREIGN,
    sqlite3.SQLITE_READONLY: "{path} cannot be written: it or its folder is read-only",
}
