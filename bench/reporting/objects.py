"""The sections on files that hold a JSON object: whatever keys they have becomes tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgen.errors import UsageError
from kgen.studies.markdown import plain, table
from reporting import origin
from reporting.page import Section, interval, number, paragraphs

# A table shows so many of a file's records.
_MOST_ROWS = 40
_SEARCHES = ("full", "halving")
Record = Mapping[str, Any]


def read_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file. Raises UsageError for any other file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is not JSON; measure it anew or delete it") from None
    if not isinstance(content, dict):
        raise UsageError(f"{path} holds no JSON object; measure it anew or delete it")
    return content


def object_section(path: Path, title: str) -> Section:
    """Return the section of a file with any keys: a table for each of its lists and objects."""
    content = read_object(path)
    own = {
        key: value
        for key, value in content.items()
        if key not in origin.HOLDERS and not (key in origin.OWN_KEYS and isinstance(value, str))
    }
    return Section(title, paragraphs(plain(origin.of_object(content)), *map(records, _groups(own))))


def search_section(path: Path, title: str) -> Section:
    """Return the section that compares two searches of the same spaces, shape by shape."""
    content = read_object(path)
    rows: list[dict[str, Any]] = []
    for entry in content.get("shapes", []):
        searches = [key for key in _SEARCHES if isinstance(entry.get(key), Mapping)]
        common = {key: value for key, value in entry.items() if key not in searches}
        shape = f"{common.pop('rows', '?')} x {common.pop('cols', '?')}"
        found = [{"shape": shape, "search": key, **entry[key]} for key in searches]
        # What is about both searches stands beside the last one.
        rows += [*found[:-1], {**(found or [{"shape": shape}])[-1], **common}]
    return Section(title, paragraphs(plain(origin.of_object(content)), records(rows)))


def _groups(content: Record) -> Iterable[Sequence[Record]]:
    """Yield what belongs in one table: a list's objects, and objects or values beside each other.

    Objects with the same keys are rows of one table, under their own keys.
    """
    values = {key: value for key, value in content.items() if not _is_nested(value)}
    if values:
        yield [values]
    alike: dict[tuple[str, ...], list[Record]] = {}
    for key, value in content.items():
        if isinstance(value, Mapping):
            alike.setdefault(tuple(value), []).append({"": key, **value})
        elif _is_nested(value):
            yield value
    yield from alike.values()


def _is_nested(value: Any) -> bool:
    is_list = isinstance(value, list) and bool(value) and all(isinstance(e, Mapping) for e in value)
    return is_list or isinstance(value, Mapping)


def records(rows: Sequence[Record]) -> str:
    """Return objects as a table with a column for each key that one of them has."""
    if not rows:
        return ""
    names = list(dict.fromkeys(key for row in rows for key in row))
    columns = [_column(name, rows) for name in names]
    shown = [[cell(row.get(name)) for name in names] for row in rows[:_MOST_ROWS]]
    more = len(rows) - _MOST_ROWS
    note = f"The file has {more:,} more." if more > 0 else ""
    return paragraphs(table(columns, shown), note)


def _column(name: str, rows: Iterable[Record]) -> str:
    values = [row[name] for row in rows if row.get(name) is not None]
    is_number = values and all(isinstance(value, int | float) for value in values)
    return name.replace("_", " ") + (">" if is_number else "")


def cell(value: Any) -> str:
    """Return a value of JSON in a few words."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list):
        return ", ".join(map(cell, value))
    if isinstance(value, Mapping):
        return _mapping(value)
    return str(value)


def _mapping(value: Record) -> str:
    if {"median", "low", "high"} <= value.keys():
        return interval(value["median"], value["low"], value["high"])
    return ", ".join(f"{key.replace('_', ' ')} {cell(entry)}" for key, entry in value.items())
