"""What runs have in flight: rows that wait for their samples, kept so that a kill loses nothing.

A row is pending from the moment it is verified until its final row is added; its samples are
written round by round. What a killed run left pending is there for the next run to finish.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kgen.store.columns import COLUMNS, flatten, unflatten
from kgen.store.connection import telling
from kgen.store.database import Store
from kgen.store.measurement import Measurement

_KEY = ("run", "variant", "rows", "cols", "l2")
_WHERE = " AND ".join(f"{name} = ?" for name in _KEY)


class Unfinished(NamedTuple):
    """A pending row and its samples in microseconds, round by round."""

    row: Measurement
    samples_us: tuple[float, ...]


class Journal:
    """The pending rows of an open store. All methods raise UsageError as the store's do."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self, row: Measurement, samples_us: Sequence[float] = ()) -> None:
        """Write down a verified row that has no more than these samples yet."""
        values = {name: COLUMNS[name].encode(value) for name, value in flatten(row).items()}
        owner = (os.getpid(), socket.gethostname(), json.dumps(values))
        with telling(self._store.path), self._store.transaction() as connection:
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
        """Add the final row, and forget that it was pending."""
        with telling(self._store.path), self._store.transaction() as connection:
            self._store.add(row)
            for table in ("pending", "samples"):
                connection.execute(f"DELETE FROM {table} WHERE {_WHERE}", _key(row))

    def unfinished(self) -> list[Unfinished]:
        """Return what runs left pending whose process is gone, oldest first.

        What this kgen cannot read, since another wrote it, is left for that one.
        """
        with telling(self._store.path), self._store.transaction() as connection:
            found = connection.execute(
                "SELECT process, host, measurement FROM pending ORDER BY rowid"
            ).fetchall()
            texts = [text for process, host, text in found if not _is_running(process, host)]
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


def _key(row: Measurement) -> tuple[str, str, int, int, str]:
    return (row.provenance.run, row.variant, row.rows, row.cols, row.l2)


def _is_running(process: int, host: str) -> bool:
    """Tell whether a run may still be at work; one on another machine may always be."""
    if host != socket.gethostname():
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
