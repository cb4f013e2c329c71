"""A study file: a sweep written down in TOML.

[sweep]
variants = ["v5", "v7"]
rows = [1024]
cols = [257, 4096]
where = "threads_per_row >= 64"
[sweep.axes]
threads = [128, 256]
cache = ["none", "inputs_shared"]
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kgen.errors import UsageError
from kgen.files import read_toml
from kgen.overlay import OURS, Overlay
from kgen.sweep.space import Space
from kgen.text import did_you_mean

# What the entries of a list may be, in Python and in words.
_NAMES = ((str,), "text in quotes")
_SIZES = ((int,), "a whole number")
_VALUES = ((int, str, bool), "a number, true, false, or text in quotes")
_LISTS = {"variants": _NAMES, "rows": _SIZES, "cols": _SIZES}


def read_study(path: Path, overlay: Overlay = OURS) -> Space:
    """Return the space that a study file describes.

    Raises UsageError that names the file when it cannot be read, is no TOML, has a key that is not
    known, or describes no space (see `Space.make`).
    """
    table = read_toml(path)
    try:
        return _space(table, overlay)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def _space(table: dict[str, Any], overlay: Overlay) -> Space:
    _check_keys(table, ["sweep"], "the file")
    sweep = _table(table.get("sweep", {}), "sweep")
    _check_keys(sweep, [*_LISTS, "where", "axes"], "[sweep]")
    lists = {key: _list(key, sweep[key], kinds) for key, kinds in _LISTS.items() if key in sweep}
    axes = _table(sweep.get("axes", {}), "sweep.axes")
    values = {axis: _list(axis, entry, _VALUES) for axis, entry in axes.items()}
    where = sweep.get("where", "")
    if not isinstance(where, str):
        raise UsageError(f"where = {where!r} is not text in quotes")
    return Space.make(**{"variants": (), **lists}, axes=values, where=where, overlay=overlay)


def _check_keys(table: dict[str, Any], known: Iterable[str], place: str) -> None:
    for key in table:
        if key not in known:
            raise UsageError(f"{place} has no key {key!r}{did_you_mean(key, known)}")


def _table(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{name} = {value!r} is not a table; begin it with [{name}]")
    return value


def _list(key: str, value: Any, kinds: tuple[tuple[type, ...], str]) -> list[Any]:
    """Return the entries of a list, all of one kind; a value by itself is a list of one."""
    listed = value if isinstance(value, list) else [value]
    for entry in listed:
        if type(entry) not in kinds[0]:
            raise UsageError(f"{key} = {entry!r} is not {kinds[1]}")
    return listed
