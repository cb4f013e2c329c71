"""What runs have in flight: rows that wait for their samples, kept so that a kill loses nothing.

A row is pending from the moment it is verified until its final row is added; its samples are
written round by round. What a killed run left pending is there for the next run to finish. Whether
a run is at work, a lock tells that it holds as long as it lives, on a byte of its own in a file
beside the database: process ids and host names repeat.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
import struct
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from kgen.store.columns import COLUMNS, flatten, unflatten
from kgen.store.connection import telling
from kgen.store.database import Store
from kgen.store.measurement import Measurement, Outcome

_KEY = ("run", "variant", "rows", "cols", "l2")
# Type, whence, start, length and process of a lock, as Linux has them on 64 bits.
_FLOCK = struct.Struct("@hhqqi4x")
_BYTE_BITS = 62
_WHERE = " AND ".join(f"{name} = ?" for name in _KEY)


class Unfinished(NamedTuple):
    """A pending row and its samples in microseconds, round by round."""

    row: Measurement
    samples_us: tuple[float, ...]


class Journal:
    """The pending rows of an open store. All methods raise UsageError as the store's do."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock: _Lock | None = None

    def begin(self, row: Measurement, samples_us: Sequence[float] = ()) -> None:
        """Write down a verified row that has no more than these samples yet."""
        values = {name: COLUMNS[name].encode(value) for name, value in flatten(row).items()}
        with telling(self._store.path), self._store.transaction() as connection:
            self._lock = self._lock or _Lock(self._store.path)
            owner = (self._lock.byte, socket.gethostname(), json.dumps(values))
            insert = "INSERT OR REPLACE INTO pending VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            connection.execute(insert, (*_key(row), *owner))
            connection.executemany(
                "INSERT OR REPLACE INTO samples VALUES (?, ?, ?, ?, ?, ?, ?)",
                ((*_key(row), number, us) for number, us in enumerate(samples_us)),
            )

    def add_round(self, rows: Mapping[str, Measurement], taken: Mapping[str, float]) -> None:
        """Write down one more sample of each candidate of a shape, by its name."""
        with telling(self._store.path), self._store.transaction() as connection:
            connection.executemany(
                "INSERT INTO samples SELECT ?, ?, ?, ?, ?, count(*), ? FROM samples "
                f"WHERE {_WHERE}",
                ((*_key(rows[name]), us, *_key(rows[name])) for name, us in taken.items()),
            )

    def finish(self, row: Measurement) -> None:
        """Add the final row, unless the machine hindered it; forget that it was pending."""
        with telling(self._store.path), self._store.transaction() as connection:
            if row.outcome is not Outcome.MACHINE_TROUBLE:
                self._store.add(row)
            for table in ("pending", "samples"):
                connection.execute(f"DELETE FROM {table} WHERE {_WHERE}", _key(row))

    def unfinished(self) -> list[Unfinished]:
        """Return what runs left pending that are not at work any more, oldest first.

        What this kgen cannot read, since another wrote it, is left for that one.
        """
        with telling(self._store.path), self._store.transaction() as connection:
            found = connection.execute(
                "SELECT process, measurement FROM pending ORDER BY rowid"
            ).fetchall()
            lost = _unlocked(self._store.path, {byte for byte, _ in found})
            texts = [text for byte, text in found if byte in lost]
            return [self._with_samples(row) for row in map(_read, texts) if row]

    def _with_samples(self, row: Measurement) -> Unfinished:
        with self._store.transaction() as connection:
            sql = f"SELECT us FROM samples WHERE {_WHERE} ORDER BY round"
            return Unfinished(row, tuple(us for (us,) in connection.execute(sql, _key(row))))


def _read(text: str) -> Measurement | None:
    try:
        values = dict(json.loads(text))
        return unflatten({name: COLUMNS[name].decode(value) for name, value in values.items()})
    except (TypeError, ValueError, KeyError):
        return None


def _key(row: Measurement) -> tuple[Any, ...]:
    values = (row.provenance.run, row.variant, row.rows, row.cols, row.l2)
    return tuple(COLUMNS[name].encode(value) for name, value in zip(_KEY, values, strict=True))


class _Lock:
    """A lock on a byte that no other run has; it ends with this object, or the process."""

    def __init__(self, database: Path) -> None:
        self.byte = secrets.randbits(_BYTE_BITS)
        self._file = _lock_file(database)
        fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _request(self.byte))


def _unlocked(database: Path, bytes_: Collection[int]) -> set[int]:
    """Return those of the bytes that no run has locked."""
    if not bytes_:
        return set()
    with _lock_file(database) as file:
        answers = {byte: fcntl.fcntl(file, fcntl.F_OFD_GETLK, _request(byte)) for byte in bytes_}
    return {byte for byte, found in answers.items() if _FLOCK.unpack(found)[0] == fcntl.F_UNLCK}


def _lock_file(database: Path) -> IO[bytes]:
    database = database.resolve()
    return database.with_name(f"{database.name}-runs").open("ab")


def _request(byte: int) -> bytes:
    """Return the system's struct flock that asks for one byte."""
    return _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
