"""Columns follow from the dataclasses, and values from columns."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, fields

import pytest

from kgen.store.columns import COLUMNS, columns_of, flatten, unflatten
from kgen.store.measurement import Kind, Measurement, Outcome, Provenance
from tests.store.rows import FULL, PLAIN


def test_every_field_is_a_column_of_its_own() -> None:
    # One less than the fields: the provenance is there by its own fields.
    assert len(COLUMNS) == len(fields(Measurement)) + len(fields(Provenance)) - 1
    assert list(flatten(FULL)) == list(COLUMNS)


@pytest.mark.parametrize("measurement", [PLAIN, FULL])
def test_values_come_back_with_their_types(measurement: Measurement) -> None:
    kept = {name: COLUMNS[name].encode(value) for name, value in flatten(measurement).items()}
    assert {type(value) for value in kept.values()} <= {int, float, str, type(None)}
    read = unflatten({name: COLUMNS[name].decode(value) for name, value in kept.items()})
    assert read == measurement
    assert (type(read.outcome), type(read.kind)) == (Outcome, Kind)
    assert type(read.is_tied) is type(measurement.is_tied)


@dataclass(frozen=True)
class Later:
    """Fields that somebody may add, one of each kind."""

    word: str = "it's"
    number: int = 7
    share: float | None = 0.5
    sure: bool = True
    unknown: bool | None = None
    list_of: tuple[float, ...] = (1.0,)


def test_an_added_column_reads_as_its_default() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (id INTEGER)")
    connection.execute("INSERT INTO t VALUES (1)")
    columns = columns_of(Later).values()
    literals = ", ".join(column.literal for column in columns)
    selected = connection.execute(f"SELECT {literals} FROM t").fetchone()
    for column in columns:
        connection.execute(f"ALTER TABLE t ADD COLUMN {column.declaration}")
    (added,) = connection.execute("SELECT * FROM t")
    for values in (added[1:], selected):
        read = [column.decode(value) for column, value in zip(columns, values, strict=True)]
        assert Later(*read) == Later()
        assert [type(value) for value in read] == [str, int, float, bool, type(None), tuple]
