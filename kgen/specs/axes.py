"""What an axis is called, and the values it takes: how they are read and which there are."""

from __future__ import annotations

import re
from typing import Any, get_type_hints

from kgen.errors import UsageError
from kgen.overlay import OURS, Overlay
from kgen.specs.choice import Choice
from kgen.specs.declared import choices as declared
from kgen.specs.declared import chosen
from kgen.specs.fields import (
    AUTO,
    AXES,
    CHOICE_AXES,
    ROW_MAP,
    SWEPT_NUMBERS,
    format_value,
    short_name,
)
from kgen.specs.spec import Spec
from kgen.text import did_you_mean

_TYPES = get_type_hints(Spec)
# What a user types for an axis, short or in full -> the axis.
AXIS_NAMES = {short_name(axis): axis for axis in AXES} | {axis: axis for axis in AXES}
AXIS_NAMES[ROW_MAP] = ROW_MAP
# Two words that people use for one of the choices.
_OTHER_WORDS = {"cache": {"registers": "inputs_registers", "shared": "inputs_shared"}}
# What is computed, of what and where is not up to a sweep.
_NOT_SWEPT = ("op", "dtype", "out_dtype", "target")


def find_axis(word: str) -> str:
    """Return the axis that a user names, short or in full. Raises UsageError with the nearest."""
    if word not in AXIS_NAMES:
        listed = map(short_name, AXES)
        raise UsageError(f"there is no axis {word!r}{did_you_mean(word, AXIS_NAMES, listed)}")
    return AXIS_NAMES[word]


def parse_value(axis: str, text: str, overlay: Overlay = OURS) -> Any:
    """Read the value of an axis. Raises UsageError that lists the choices."""
    if axis == ROW_MAP or axis in CHOICE_AXES:
        return chosen(axis, _OTHER_WORDS.get(axis, {}).get(text, text), overlay)
    if listed := listed_values(axis):
        written = {format_value(value): value for value in listed}
        if text not in written:
            problem = f"{short_name(axis)}={text} is not a choice"
            raise UsageError(problem + did_you_mean(text, written))
        return written[text]
    can_be_auto = _TYPES[axis] is not int
    if text == AUTO and can_be_auto:
        return None
    if not re.fullmatch(r"-?[0-9]{1,12}", text):
        needed = "a whole number is needed, of at most 12 digits" + ", or auto" * can_be_auto
        raise UsageError(f"{short_name(axis)}={text}: {needed}")
    return int(text)


def listed_values(axis: str, overlay: Overlay = OURS) -> tuple[Any, ...]:
    """Return the values that an axis chooses from; none when its values are numbers."""
    if _TYPES.get(axis) is bool:
        return (True, False)
    found: dict[str, Choice] = declared(axis, overlay)
    return tuple(found.values())


def swept_values(axis: str, overlay: Overlay = OURS) -> tuple[Any, ...]:
    """Return what a sweep over everything tries on an axis."""
    if axis in _NOT_SWEPT:
        return (AXES[axis].default,)
    return listed_values(axis, overlay) or SWEPT_NUMBERS[axis]


def choices(axis: str, overlay: Overlay = OURS) -> str:
    """Return the values that an axis takes, as a user types them."""
    if listed := listed_values(axis, overlay):
        return " ".join(map(format_value, listed))
    return "a number" if _TYPES[axis] is int else "a number or auto"
