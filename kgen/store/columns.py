"""The columns of the database and of exports: the fields of a measurement and its provenance.

All of it follows from the dataclasses. A field that is added with a default is a new column, which
older files get when they are next written to, and which reads as the default until then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from kgen.store.measurement import Measurement, Provenance


@dataclass(frozen=True)
class Column:
    """A field as a column: the type of its values, None's among them, and its default if any."""

    name: str
    hint: Any
    default: Any

    @property
    def optional(self) -> bool:
        """Whether None is one of its values."""
        return NoneType in get_args(self.hint)

    @property
    def kind(self) -> type:
        """The type of its values besides None."""
        hint = get_args(self.hint)[0] if self.optional else self.hint
        kind: type = get_origin(hint) or hint
        return kind

    @property
    def declaration(self) -> str:
        """The column as SQL declares it."""
        sql = {int: "INTEGER", bool: "INTEGER", float: "REAL"}.get(self.kind, "TEXT")
        condition = "" if self.optional else " NOT NULL"
        default = "" if self.default is MISSING else f" DEFAULT {self.literal}"
        return f'"{self.name}" {sql}{condition}{default}'

    @property
    def literal(self) -> str:
        """The default as SQL writes it."""
        encoded = self.encode(self.default)
        if isinstance(encoded, str):
            return "'" + encoded.replace("'", "''") + "'"
        return "NULL" if encoded is None else repr(encoded)

    def encode(self, value: Any) -> int | float | str | None:
        """Return a value as SQLite keeps it: a tuple as JSON, a truth value as 0 or 1."""
        if value is None:
            return None
        if self.kind is tuple:
            return json.dumps(value)
        if issubclass(self.kind, str):  # a path may hold bytes that are no text
            return str(value).encode("utf-8", "backslashreplace").decode("utf-8")
        number: int | float = float(value) if self.kind is float else int(value)
        return number

    def decode(self, stored: Any) -> Any:
        """Return the value that `encode` kept. Raises ValueError when it cannot be one."""
        try:
            stored = json.loads(stored) if self.kind is tuple else stored
            return msgspec.convert(stored, self.hint, strict=False)
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from None


def columns_of(*classes: type) -> dict[str, Column]:
    """Return the columns of dataclasses, by name; a field that is a provenance is not one."""
    return {
        field.name: Column(field.name, hint, field.default)
        for cls in classes
        for field in fields(cls)
        if (hint := get_type_hints(cls)[field.name]) is not Provenance
    }


COLUMNS = columns_of(Measurement, Provenance)


def flatten(measurement: Measurement) -> dict[str, Any]:
    """Return a measurement's values by column, its provenance's among them."""
    values = vars(measurement) | vars(measurement.provenance)
    return {name: values[name] for name in COLUMNS}


def unflatten(values: Mapping[str, Any]) -> Measurement:
    """Return the measurement of such values; what is absent has its default.

    Raises ValueError for a value that is absent without a default, of another type, or that
    belongs to no column.
    """
    if unknown := values.keys() - COLUMNS:
        raise ValueError(f"this kgen knows no {', '.join(sorted(unknown))}")
    return msgspec.convert({**values, "provenance": values}, Measurement)
