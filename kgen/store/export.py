"""Measurements as JSON and CSV, and JSON read back: for files that are kept, and other programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from math import isfinite
from pathlib import Path
from typing import Any

from kgen.errors import UsageError
from kgen.files import write_atomically
from kgen.store.columns import COLUMNS, flatten, unflatten
from kgen.store.measurement import Measurement

# Columns whose text is itself a JSON object.
_OBJECTS = ("spec", "protocol")


def objects(measurements: Iterable[Measurement]) -> list[dict[str, Any]]:
    """Return one flat JSON object a measurement, with its provenance's values among its own.

    `samples_us` is a list, `spec` and `protocol` are objects, or null when there is none. Numbers
    that JSON lacks (NaN, infinities) are null.
    """
    return [
        {name: _exported(name, value) for name, value in flatten(measurement).items()}
        for measurement in measurements
    ]


def _exported(name: str, value: Any) -> Any:
    if name in _OBJECTS:
        return _object(value)
    if isinstance(value, tuple):
        return [_finite(entry) for entry in value]
    return _finite(value) if isinstance(value, float) else value


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _object(text: str) -> Any:
    """Return the JSON object in a text; a text that is none as it is, and null for an empty one."""
    try:
        loaded = json.loads(text, parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        loaded = None
    return loaded if isinstance(loaded, dict) else text or None


def json_text(measurements: Iterable[Measurement]) -> str:
    """Return a JSON list with a line a measurement."""
    lines = [json.dumps(entry, allow_nan=False) for entry in objects(measurements)]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def csv_text(measurements: Iterable[Measurement]) -> str:
    """Return CSV with a header; lists and objects are JSON, and what is absent is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    for entry in objects(measurements):
        writer.writerow({name: _cell(value) for name, value in entry.items()})
    return text.getvalue()


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def write_json(path: Path, measurements: Iterable[Measurement]) -> None:
    """Write what `json_text` gives, in one step. Raises UsageError if it cannot be written."""
    write_atomically(path, json_text(measurements))


def read_json(path: Path) -> list[Measurement]:
    """Return the measurements of a file that `write_json` wrote; keys with a default may be absent.

    Raises UsageError, with the measurement's number, for any other file.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=lambda name: None)
    except OSError as error:
        raise UsageError(f"cannot read measurements from {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path} has no measurements: it is not JSON") from None
    if not isinstance(content, list):
        raise UsageError(f"{path} has no measurements: it is not a list of them")
    return [_measurement(path, number, entry) for number, entry in enumerate(content, start=1)]


def _measurement(path: Path, number: int, entry: Any) -> Measurement:
    try:
        if not isinstance(entry, dict):
            raise ValueError("it is not an object")
        return unflatten(entry | {name: _text(entry[name]) for name in _OBJECTS if name in entry})
    except ValueError as error:
        raise UsageError(f"measurement {number} of {path} cannot be read: {error}") from None


def _text(value: Any) -> Any:
    """Return the text of what `_object` made of one."""
    return json.dumps(value) if isinstance(value, dict) else "" if value is None else value
