"""Choices that a user's templates add to an axis, from the `choices.toml` beside them.

[topology.butterfly]
like = "two_level"
help = "every lane gets its warp's result, and every warp the row's"

The template `topology/butterfly.j2` then stands where `topology/two_level.j2` would. Rules, launch
and buffers are those of the choice that it is like.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

from kgen.errors import UsageError
from kgen.files import read_toml
from kgen.overlay import template_dir, user_template_dir
from kgen.specs.choices import Choice, OwnChoice
from kgen.specs.spec import AXES
from kgen.text import did_you_mean

CHOICES_FILE = "choices.toml"
_KEYS = ("like", "help")
# Words become parts of file names and symbols.
_WORD = re.compile(r"[a-z][a-z0-9_]{0,30}")


def own_choices() -> dict[str, dict[str, OwnChoice]]:
    """Return the choices that the user's templates add: axis -> word -> choice.

    Raises UsageError that names the file and the entry when one of them cannot be used.
    """
    folder = user_template_dir()
    return _read(folder) if folder else {}


@functools.cache
def _read(folder: Path) -> dict[str, dict[str, OwnChoice]]:
    path = folder / CHOICES_FILE
    if not path.exists():
        return {}
    table = read_toml(path)
    try:
        return {axis: _of_axis(folder, axis, entries) for axis, entries in table.items()}
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def _of_axis(folder: Path, axis: str, entries: Any) -> dict[str, OwnChoice]:
    open_axes = [name for name in AXES if _templated(name)]
    if axis not in open_axes:
        raise UsageError(f"no choices can be added to {axis!r}{did_you_mean(axis, open_axes)}")
    if not isinstance(entries, dict):
        raise UsageError(f"{axis} = {entries!r} is not a table; begin one with [{axis}.WORD]")
    return {word: _choice(folder, axis, word, entry) for word, entry in entries.items()}


def _templated(axis: str) -> dict[str, Choice]:
    """Return the choices of an axis that have a template of their own."""
    folder = template_dir() / axis
    return {str(choice): choice for choice in _choices(axis) if (folder / f"{choice}.j2").is_file()}


def _choices(axis: str) -> tuple[Choice, ...]:
    kind = type(AXES[axis].default)
    return tuple(kind) if issubclass(kind, Choice) else ()


def _choice(folder: Path, axis: str, word: str, entry: Any) -> OwnChoice:
    head = f"[{axis}.{word}]"
    if not _WORD.fullmatch(word):
        raise UsageError(f"{head} needs a word of small letters, digits and _")
    if word in _choices(axis):
        raise UsageError(f"{head}: {axis} has a choice {word} already; take another word")
    if not isinstance(entry, dict) or not all(isinstance(text, str) for text in entry.values()):
        raise UsageError(f"{head} takes {' and '.join(_KEYS)}, each a text in quotes")
    for key in entry:
        if key not in _KEYS:
            raise UsageError(f"{head} has no key {key!r}{did_you_mean(key, _KEYS)}")
    like, known = entry.get("like", ""), _templated(axis)
    if like not in known:
        raise UsageError(f"{head} like = {like!r} is not a choice{did_you_mean(like, known)}")
    template = folder / axis / f"{word}.j2"
    if not template.is_file():
        raise UsageError(f"{head} has no template; write {template}")
    return OwnChoice(word, known[like], entry.get("help", ""))
