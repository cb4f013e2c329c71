"""How what a user has typed of a variant, an axis or a file can go on. Shells ask at each Tab."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kgen.text import names_a_file

if TYPE_CHECKING:
    from kgen.overlay import Overlay


def complete_variant(context: typer.Context, incomplete: str) -> list[str]:
    """Return versions, then axes and their values (`v7:exp=exp2,vec=4`), and source files."""
    return [*_variants(incomplete, _overlay(context)), *_files(incomplete)]


def complete_variants(context: typer.Context, incomplete: str) -> list[str]:
    """Return how a list of variants can go on: `v5,v7:exp=exp2,v8`."""
    overlay = _overlay(context)
    start = incomplete[: incomplete.rfind(",") + 1]
    found = [start + name for name in _variants("", overlay)]
    if with_axes := re.search(r"\w+:[^:]*$", incomplete):
        words = _variants(with_axes[0], overlay)
        found += [incomplete[: with_axes.start()] + word for word in words]
    return found


def complete_axis(context: typer.Context, incomplete: str) -> list[str]:
    """Return how an axis with several values can go on: `vec=1,4`."""
    axis, equals, values = incomplete.partition("=")
    if not equals:
        return _settings("", _overlay(context))
    start = values[: values.rfind(",") + 1]
    return [f"{axis}={start}{value}" for value in _values(axis, _overlay(context))]


def complete_type(context: typer.Context, incomplete: str) -> list[str]:
    """Return the types that elements can have."""
    return _values("dtype", _overlay(context))


def _overlay(context: typer.Context) -> Overlay:
    """Return the templates of the command line so far; its options are not acted upon yet."""
    from kgen.overlay import OURS, overlay

    templates = context.find_root().params.get("templates")
    return overlay(Path(templates)) if templates else OURS


def _variants(text: str, overlay: Overlay) -> list[str]:
    from kgen.specs.versions import VERSIONS

    version, colon, settings = text.partition(":")
    if not colon:
        return list(VERSIONS)
    done, comma, last = settings.rpartition(",")
    return [f"{version}:{done}{comma}{setting}" for setting in _settings(last, overlay, done)]


def _settings(text: str, overlay: Overlay, done: str = "") -> list[str]:
    """Return the axes besides those that `done` sets; with an axis in the text, its values."""
    from kgen.specs.axes import AXIS_NAMES
    from kgen.specs.fields import short_name

    axis, equals, _ = text.partition("=")
    if equals:
        return [f"{axis}={value}" for value in _values(axis, overlay)]
    named = {AXIS_NAMES.get(setting.partition("=")[0]) for setting in done.split(",")}
    axes = dict.fromkeys(AXIS_NAMES.values())
    return [f"{short_name(axis)}=" for axis in axes if axis not in named]


def _values(word: str, overlay: Overlay) -> list[str]:
    from kgen.specs.axes import AXIS_NAMES, listed_values
    from kgen.specs.fields import SWEPT_NUMBERS, format_value

    axis = AXIS_NAMES.get(word, "")
    values = listed_values(axis, overlay) or SWEPT_NUMBERS.get(axis, ())
    return [format_value(value) for value in values]


def _files(text: str) -> Iterator[str]:
    """Yield sources, and once something was typed the folders on the way to some."""
    start = text[: text.rfind("/") + 1]
    folder = Path(start or ".").expanduser()
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_dir() and text:
            yield f"{start}{path.name}/"
        elif names_a_file(path.name):
            yield start + path.name
