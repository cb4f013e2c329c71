"""Reads what `ncu --csv` prints: a row for every metric of every launch, among other lines."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kgen.errors import CheckFailed, MissingTool
from kgen.profile.metrics import RENAMED

_ERROR = "==ERROR=="
_WARNING = "==WARNING=="
_NO_PERMISSION = "ERR_NVGPUCTRPERM"
_COLUMNS = ("ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value")
_OWN_NAMES = {theirs: ours for ours, theirs in RENAMED.items()}
# ncu's multiples of its base units, which it prints unless it is told --print-units base.
_PREFIXES = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SECONDS = {"n": 1.0, "u": 1e3, "m": 1e6, "": 1e9}
_SECOND = re.compile(r"(n|u|m|)s(?:econd)?")
_PREFIXED = re.compile(r"([KMGT])(?:byte|inst|sector|cycle)")


@dataclass(frozen=True)
class MeasuredLaunch:
    """One profiled launch: the kernel's name, and ncu's metrics that have a number, in base units
    (ns, bytes, %) and under the names of `METRICS`.
    """

    kernel: str
    measured: dict[str, float]


def launches_in(text: str) -> list[MeasuredLaunch]:
    """Return the launches in what ncu printed with --csv, in their order.

    Lines of the program and of ncu around the table are passed over, as are metrics without a
    number. Raises MissingTool when ncu was not permitted to read the GPU's counters, CheckFailed
    with its words when it told of an error or printed no table.
    """
    if errors := words_of(text, _ERROR):
        raise _failure(errors)
    launches: dict[tuple[str, str], MeasuredLaunch] = {}
    for row in _rows(text):
        # Every process numbers its launches from 0.
        key = (row.get("Process ID", ""), row["ID"])
        kernel = row["Kernel Name"].partition("(")[0].strip()  # ncu may print its parameters
        launch = launches.setdefault(key, MeasuredLaunch(kernel, {}))
        name, value = row["Metric Name"], _number(row["Metric Value"], row["Metric Unit"])
        if value is not None:
            launch.measured[_OWN_NAMES.get(name, name)] = value
    if not launches:
        warnings = [words for words in words_of(text, _WARNING) if not words.startswith("Note:")]
        said = "; ".join(warnings) or "its output has no table as --csv prints it"
        raise CheckFailed(f"ncu measured no kernel: {said}")
    return list(launches.values())


def words_of(text: str, kind: str = _ERROR) -> list[str]:
    """Return the messages of a kind, ncu's errors by default, each once."""
    lines = [line.partition(kind)[2].strip() for line in text.splitlines() if kind in line]
    return list(dict.fromkeys(line for line in lines if line))


def _failure(errors: list[str]) -> CheckFailed | MissingTool:
    said = "; ".join(errors)
    if _NO_PERMISSION in said:
        return MissingTool(
            f"ncu may not read the GPU's performance counters ({_NO_PERMISSION}): run as root (in "
            "a container with --cap-add=SYS_ADMIN), or have the driver's module loaded with "
            "NVreg_RestrictProfilingToAdminUsers=0; kgen profile --on cpu counts without them"
        )
    return CheckFailed(f"ncu failed: {said}")


def _rows(text: str) -> Iterator[dict[str, str]]:
    """Yield the rows of the table as dicts by column; there may be several tables with a head."""
    head: list[str] = []
    for line in text.splitlines():
        fields = _fields(line) if line.startswith('"') else []
        if all(column in fields for column in _COLUMNS):
            head = fields
        elif head and len(fields) == len(head):
            yield dict(zip(head, fields, strict=True))


def _fields(line: str) -> list[str]:
    """Split one line: a lone quote in the program's own lines must not swallow the table."""
    try:
        return next(csv.reader([line]))
    except csv.Error:  # of a line that the program printed, longer than any of ncu's
        return []


def _number(value: str, unit: str) -> float | None:
    """Return a value in base units; None for `n/a`, `nan` and whatever else is no number."""
    try:
        number = float(value.replace(",", ""))
    except ValueError:
        return None
    return number * _scale(unit) if math.isfinite(number) else None


def _scale(unit: str) -> float:
    if second := _SECOND.fullmatch(unit):
        return _SECONDS[second[1]]
    prefixed = _PREFIXED.fullmatch(unit)
    return _PREFIXES[prefixed[1]] if prefixed else 1.0
