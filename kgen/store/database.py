"""The store of measurements: rows are added and found, never changed."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs

from kgen.errors import UsageError
from kgen.store.columns import COLUMNS, flatten, unflatten
from kgen.store.connection import all_or_nothing, connect, connect_to_read, full_table, telling
from kgen.store.measurement import Kind, Measurement, Outcome

# A GPU's time is worth waiting for whoever is writing.
BUSY_TIMEOUT_S = 30.0
LATEST = "latest"
_NAMES = ", ".join(f'"{name}"' for name in COLUMNS)
_NEWEST_FIRST = "ORDER BY measured_at DESC, id DESC"


def default_path() -> Path:
    """Return where measurements go when nobody says: $KGEN_DB, else a file of the user's data."""
    if named := os.environ.get("KGEN_DB"):
        return Path(named)
    return Path(platformdirs.user_data_dir("kgen")) / "results.sqlite"


def open_store(
    path: Path | None = None, *, read_only: bool = False, timeout_s: float = BUSY_TIMEOUT_S
) -> Store:
    """Open the store at `path`, by default `default_path()`; a missing one is made.

    With `read_only` nothing is made or changed, and a file that may not be written can be read.
    A call waits `timeout_s` seconds for other processes that write. Raises UsageError when there
    is no file to read, or it is damaged, locked, not kgen's, of a newer kgen, or cannot be written.
    """
    path = path or default_path()
    return Store(path, (connect_to_read if read_only else connect)(path, timeout_s))


class _Condition(NamedTuple):
    sql: str
    values: tuple[Any, ...]


class Store:
    """An open store, for the thread that opened it; close it, or use it in a `with`.

    Any number of processes may add to one file at once. All methods raise UsageError when the file
    is locked for too long, damaged, or cannot be read or written.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        """Take an open connection to the file at `path`."""
        self.path = path
        self._connection = connection

    def add(self, measurement: Measurement) -> None:
        """Add a row. It is on disk when this returns, whatever happens to the process then."""
        values = [COLUMNS[name].encode(value) for name, value in flatten(measurement).items()]
        sql = f"INSERT INTO measurements ({_NAMES}) VALUES ({', '.join('?' * len(COLUMNS))})"
        with telling(self.path):
            self._connection.execute(sql, values)

    def select(
        self,
        *,
        variant: str | None = None,
        rows: int | None = None,
        cols: int | None = None,
        dtype: str | None = None,
        out_dtype: str | None = None,
        device: str | None = None,
        outcome: Outcome | None = None,
        run: str | None = None,
        kind: Kind | None = None,
        protocol_name: str | None = None,
        l2: str | None = None,
        since: datetime | None = None,
        without: Outcome | None = None,
        limit: int | None = None,
    ) -> list[Measurement]:
        """Return the measurements that fit all that is given, newest last; of a run, in its order.

        `variant` and `device` are exact or patterns of `*`, `?` and `[...]`. `run` may be `latest`:
        of all runs in the file, the one that started last. `since` is the earliest start of a run,
        in UTC unless it has a zone. Who ended as `without` is left out. `limit` keeps that many of
        the newest.
        """
        equal: dict[str, Any] = {"rows": rows, "cols": cols, "outcome": outcome, "kind": kind}
        equal |= {"protocol_name": protocol_name, "l2": l2}
        equal |= {"dtype": dtype, "out_dtype": out_dtype}
        equal["run"] = self._latest_run() if run == LATEST else run
        where = [_Condition(f'"{name}" = ?', (value,)) for name, value in _encoded(equal)]
        for name, pattern in _encoded({"variant": variant, "device": device}):
            where.append(_Condition(f'("{name}" = ? OR "{name}" GLOB ?)', (pattern, pattern)))
        if since is not None:
            where.append(_Condition("measured_at >= ?", (_utc(since),)))
        if without is not None:
            where.append(_Condition("outcome <> ?", (COLUMNS["outcome"].encode(without),)))
        return self._find(where, limit)[::-1]

    def find(self, keys: Mapping[str, Any]) -> Measurement | None:
        """Return the newest measurement whose columns have exactly these values, if there is one.

        `keys` are fields of Measurement and Provenance. With `variant`, `rows`, `cols` and
        `source_hash` among them the look-up takes the same time in a file of any size.
        """
        where = [
            _Condition(f'"{name}" IS ?', (COLUMNS[name].encode(value),))
            for name, value in keys.items()
        ]
        return next(iter(self._find(where, 1)), None)

    def _latest_run(self) -> str | None:
        with telling(self.path):
            sql = f"SELECT run FROM measurements {_NEWEST_FIRST} LIMIT 1"
            found = self._connection.execute(sql).fetchone()
        return found[0] if found else None

    def _find(self, where: Sequence[_Condition], limit: int | None) -> list[Measurement]:
        """Return the measurements that fit, newest first."""
        condition = "WHERE " + " AND ".join(part.sql for part in where) if where else ""
        values = [value for part in where for value in part.values]
        with telling(self.path):
            sql = f"SELECT {_NAMES} FROM {full_table(self._connection)} {condition} {_NEWEST_FIRST}"
            values.append(-1 if limit is None else limit)
            found = self._connection.execute(f"{sql} LIMIT ?", values)
            return [self._measurement(row) for row in found]

    def _measurement(self, row: tuple[Any, ...]) -> Measurement:
        pairs = zip(COLUMNS.values(), row, strict=True)
        try:
            return unflatten({column.name: column.decode(value) for column, value in pairs})
        except ValueError as error:
            raise UsageError(f"{self.path} has a row that this kgen cannot read: {error}") from None

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Give the connection for statements that belong together: all of them happen, or none."""
        if self._connection.in_transaction:
            yield self._connection
            return
        with all_or_nothing(self._connection):
            yield self._connection

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Store:
        """Return the store."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self.close()


def _encoded(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the names and the values, as the file has them, of what is given."""
    given = {name: value for name, value in values.items() if value is not None}
    return [(name, COLUMNS[name].encode(value)) for name, value in given.items()]


def _utc(moment: datetime) -> str:
    # Without a zone at its end it sorts before every spelling of the same second.
    moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    return moment.replace(tzinfo=None).isoformat(timespec="seconds")
