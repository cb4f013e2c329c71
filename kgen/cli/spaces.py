"""What the options of a sweep describe: its spaces."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from kgen.errors import UsageError

if TYPE_CHECKING:
    from kgen.sweep.space import Space

Axes = dict[str, tuple[str, ...]]


def spaces(
    study: Path | None,
    rows: str | None,
    cols: str | None,
    variants: str | None,
    axis: Sequence[str] | None,
    where: str | None,
    all_: bool,
    typed: Mapping[str, str | None] = MappingProxyType({}),
) -> tuple[Space, ...]:
    """Return what is named, or with shapes alone what is likely to be fast on them.

    `typed` are the axes of types, of which None is not given.
    Raises UsageError for what is unknown, and when nothing is named.
    """
    from kgen.cli.targets import used_overlay
    from kgen.specs.types import find_types
    from kgen.specs.versions import VERSIONS
    from kgen.sweep.likely import likely_spaces
    from kgen.sweep.space import Space, everything
    from kgen.sweep.study import read_study

    axes, names, templates = _axes(axis or ()), _words(variants), used_overlay()
    types = find_types(**typed, overlay=templates)
    set_types: Axes = {name: (word,) for name, word in typed.items() if word}
    given = (numbers("--rows", rows), numbers("--cols", cols))
    shapes = (given[0] or (1024,), given[1] or (4096,))
    if all_:
        if names or axes or study:
            raise UsageError("--all is every combination; leave --variants, --axis and files out")
        return everything(*shapes, where or "", templates, set_types)
    if both := axes.keys() & set_types.keys():
        raise UsageError(f"{min(both)} is given as an option and as --axis; leave one out")
    if study:
        changed = axes | set_types
        return (read_study(study, templates).changed(names, *given, changed, where or ""),)
    if not (names or axes or where or rows or cols):
        raise UsageError("name what to sweep: --variants v5,v7, a study file, or --all")
    if not (names or axes or where):
        return likely_spaces(itertools.product(*shapes), templates, types)
    if not names:
        print(f"kgen: no --variants, so all {len(VERSIONS)} versions", file=sys.stderr)
    return (Space.make(names or VERSIONS, *shapes, axes | set_types, where or "", templates),)


def _axes(settings: Sequence[str]) -> Axes:
    from kgen.specs.fields import short_name
    from kgen.sweep.space import parse_setting

    axes: Axes = {}
    for name, values in map(parse_setting, settings):
        if name in axes:
            word = short_name(name)
            raise UsageError(f"--axis {word} is given twice; list all values: {word}=A,B")
        axes[name] = values
    return axes


def _words(text: str | None) -> tuple[str, ...]:
    """Split a list; the axes of a variant that follow its colon stay with it."""
    found: list[str] = []
    for word in filter(None, (part.strip() for part in (text or "").split(","))):
        if found and "=" in word and ":" not in word:
            found[-1] += "," + word
        else:
            found.append(word)
    return tuple(found)


def numbers(option: str, text: str | None) -> tuple[int, ...]:
    """Return the numbers of a list, none without one. Raises UsageError for what is none."""
    if text is None:
        return ()
    words = [word.strip() for word in text.split(",") if word.strip()]
    if wrong := [word for word in words or [text] if not word.isdecimal()]:
        raise UsageError(f"{option} {text}: {wrong[0]!r} is not a number; write it as 257,4096")
    return tuple(int(word) for word in words)
