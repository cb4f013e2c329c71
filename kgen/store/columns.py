"""The columns of the database and of exports: the fields of a measurement and its provenance.

All of it follows from the dataclasses. A field that is added with a default is a new column, which
older files get when they are next written to, and which reads as the default until then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from enum import StrEnum
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from kgen.store.measurement import Measurement, Provenance


@dataclass(frozen=True)
class Column:
    """A field as a column: what its values are, whether None is one, and its default if any."""

    name: str
    kind: type
    optional: bool
    default: Any

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
        if stored is None:
            return None
        if self.kind is tuple:
            return tuple(json.loads(stored))
        return self.kind(stored)

    def from_json(self, value: Any) -> Any:
        """Return the value of a JSON export. Raises ValueError when it cannot be one."""
        if value is None and self.optional:
            return None
        if self.kind is tuple:
            if isinstance(value, list) and all(map(_is_number, value)):
                return tuple(map(float, value))
        elif self.kind is float:
            if _is_number(value):
                return float(value)
        elif issubclass(self.kind, StrEnum):
            return self.kind(value)
        elif type(value) is self.kind:
            return value
        raise ValueError(f"{self.name} cannot be {json.dumps(value)}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def columns_of(*classes: type) -> dict[str, Column]:
    """Return the columns of dataclasses, by name; a field that is a provenance is not one."""
    return {
        field.name: _column(field, hint)
        for cls in classes
        for field, hint in _hinted(cls)
        if hint is not Provenance
    }


def _hinted(cls: Any) -> Iterator[tuple[Field[Any], Any]]:
    hints = get_type_hints(cls)
    return ((field, hints[field.name]) for field in fields(cls))


def _column(field: Field[Any], hint: Any) -> Column:
    optional = NoneType in get_args(hint)
    kind = next(kind for kind in get_args(hint) if kind is not NoneType) if optional else hint
    return Column(field.name, get_origin(kind) or kind, optional, field.default)


COLUMNS = columns_of(Measurement, Provenance)
_PROVENANCE = columns_of(Provenance)


def flatten(measurement: Measurement) -> dict[str, Any]:
    """Return a measurement's values by column, its provenance's among them."""
    sources = ((_PROVENANCE, measurement.provenance), (COLUMNS.keys() - _PROVENANCE, measurement))
    values = {name: getattr(source, name) for names, source in sources for name in names}
    return {name: values[name] for name in COLUMNS}


def unflatten(values: Mapping[str, Any]) -> Measurement:
    """Return the measurement of such values; what is absent has its default.

    Raises TypeError for a value that is absent without a default, or that belongs to no column.
    """
    provenance = {name: value for name, value in values.items() if name in _PROVENANCE}
    own = {name: value for name, value in values.items() if name not in _PROVENANCE}
    return Measurement(provenance=Provenance(**provenance), **own)
