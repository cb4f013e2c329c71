"""Reads the declarations of choices: `choices.toml` beside the templates, kgen's and a user's.

[topology.butterfly]
help = "two levels of butterfly shuffles"
connects = "row_threads % 32 == 0"
shared_values = "threads_per_block // 32"

The keys are the fields of the axis's record in `kgen.specs.choice`. `like = "two_level"` takes what
is not named from another choice of the axis, and its template where there is no AXIS/WORD.j2.
"""

from __future__ import annotations

import functools
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from kgen.errors import UsageError
from kgen.files import read_toml
from kgen.overlay import OURS, Overlay, template_dir
from kgen.specs import choice
from kgen.specs.choice import Choice
from kgen.specs.formula import Formula, formula
from kgen.text import did_you_mean

CHOICES_FILE = "choices.toml"
# The axis -> the record of its choices; row_map is a short word for several axes.
RECORDS: dict[str, type[Choice]] = {
    "op": choice.Op,
    "dtype": choice.Element,
    "target": choice.Side,
    "row_split": choice.RowSplit,
    "row_order": choice.RowOrder,
    "row_loop": choice.RowLoop,
    "row_io": choice.RowIo,
    "next_row": choice.NextRow,
    "row_map": choice.RowMap,
    "topology": choice.Topology,
    "merge": choice.Merge,
    "update": choice.Update,
    "cache": choice.Cache,
    "vec_scans": choice.VecScans,
    "unaligned": choice.Unaligned,
    "loads": choice.Hint,
    "stores": choice.Hint,
    "trip": choice.Trip,
    "exp": choice.Exp,
    "normalize": choice.Normalize,
}
# An axis whose choices are those of another one.
SAME_CHOICES = {"out_dtype": "dtype"}
# Words become parts of file names and symbols.
_WORD = re.compile(r"(__)?[a-z][a-z0-9_]{0,30}")


def choices(axis: str, overlay: Overlay = OURS) -> dict[str, Choice]:
    """Return the choices of an axis by word, kgen's first; none of an axis of numbers.

    Raises UsageError that names file and entry when a user's declaration cannot be used.
    """
    return _all(overlay).get(SAME_CHOICES.get(axis, axis), {})


def chosen(axis: str, word: str, overlay: Overlay = OURS) -> Choice:
    """Return the choice that a word stands for. Raises UsageError with the nearest."""
    known = choices(axis, overlay)
    if word not in known:
        raise UsageError(f"{axis}={word} is not a choice{did_you_mean(word, known)}")
    return known[word]


@functools.cache
def _all(overlay: Overlay) -> dict[str, dict[str, Choice]]:
    known: dict[str, dict[str, Choice]] = {axis: {} for axis in RECORDS}
    for folder in overlay.folders:
        path = folder / CHOICES_FILE
        try:
            for axis, entries in (read_toml(path) if path.exists() else {}).items():
                _add(known, folder, axis, entries)
        except UsageError as error:
            raise UsageError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from None
    return known


def _add(known: dict[str, dict[str, Choice]], folder: Path, axis: str, entries: Any) -> None:
    is_ours = folder == template_dir()
    if not is_ours and axis not in (names := open_axes()):
        raise UsageError(f"no choices can be added to {axis!r}{did_you_mean(axis, names)}")
    if not isinstance(entries, dict):
        raise UsageError(f"{axis} = {entries!r} is not a table; begin one with [{axis}.WORD]")
    for word, entry in entries.items():
        head = f"[{axis}.{word}]"
        if not _WORD.fullmatch(word):
            raise UsageError(f"{head} needs a word of small letters, digits and _")
        if word in known[axis]:
            raise UsageError(f"{head}: {axis} has a choice {word} already; take another word")
        made = _record(head, RECORDS[axis], word, entry, known[axis])
        template = folder / axis / f"{word}.j2"
        if template.is_file():
            made = replace(made, template=word)
        elif not is_ours and not made.template:
            raise UsageError(f"{head} has no template; write {template}")
        known[axis][word] = made


def open_axes() -> list[str]:
    """Return the axes to which choices can be added: those whose choices write code."""
    return [axis for axis in RECORDS if (template_dir() / axis).is_dir()]


def _record(
    head: str, kind: type[Choice], word: str, entry: Any, known: dict[str, Choice]
) -> Choice:
    if not isinstance(entry, dict):
        raise UsageError(f"{head} is not a table of facts")
    types, facts = get_type_hints(kind), {}
    names = [field.name for field in fields(kind) if field.name not in ("word", "template")]
    if like := entry.get("like"):
        if not isinstance(like, str) or like not in known:
            raise UsageError(
                f"{head} like = {like!r} is not a choice{did_you_mean(str(like), known)}"
            )
        facts = {name: getattr(known[like], name) for name in (*names, "template")}
    for key, value in entry.items():
        if key == "like":
            continue
        if key not in names:
            raise UsageError(f"{head} has no fact {key!r}{did_you_mean(key, [*names, 'like'])}")
        facts[key] = _fact(f"{head} {key}", types[key], value)
    return kind(word, **facts)


def _fact(place: str, kind: Any, value: Any) -> Any:
    if kind in (Formula, Formula | None):
        if not isinstance(value, str):
            raise UsageError(f"{place} = {value!r} is not a formula; write one in quotes")
        return formula(value)
    wanted = {bool: "true or false", str: "a text in quotes", int: "a whole number"}.get(kind)
    if wanted and not isinstance(value, kind):
        raise UsageError(f"{place} = {value!r} is not {wanted}")
    return value


# What the elements of a matrix are unless something else is said.
FLOAT32: choice.Element = chosen("dtype", "float32")  # type: ignore[assignment]
