"""What an axis is called, and the values it takes: how they are read and which there are."""

from __future__ import annotations

import re
from typing import Any, get_type_hints

from kgen.errors import UsageError
from kgen.specs.choices import Cache, Choice
from kgen.specs.own import own_choices
from kgen.specs.spec import AXES, SWEPT_NUMBERS, Spec, format_value, short_name
from kgen.text import did_you_mean

_TYPES = get_type_hints(Spec)
# What a user types for an axis, short or in full -> the axis.
AXIS_NAMES = {short_name(axis): axis for axis in AXES} | {axis: axis for axis in AXES}
# Two words that people use for one of the choices.
_CACHE_WORDS = {"registers": Cache.INPUTS_REGISTERS, "shared": Cache.INPUTS_SHARED}


def find_axis(word: str) -> str:
    """Return the axis that a user names, short or in full. Raises UsageError with the nearest."""
    if word not in AXIS_NAMES:
        raise UsageError(f"there is no axis {word!r}{did_you_mean(word, AXIS_NAMES)}")
    return AXIS_NAMES[word]


def parse_value(axis: str, text: str) -> Any:
    """Read the value of an axis. Raises UsageError that lists the choices."""
    if listed := listed_values(axis):
        choices = {format_value(value): value for value in listed}
        words = choices | (_CACHE_WORDS if axis == "cache" else {})
        if text not in words:
            problem = f"{short_name(axis)}={text} is not a choice"
            raise UsageError(problem + did_you_mean(text, choices))
        return words[text]
    if text == "auto" and _TYPES[axis] is not int:
        return None
    if not re.fullmatch(r"-?[0-9]{1,12}", text):
        raise UsageError(f"{axis}={text}: a whole number is needed")
    return int(text)


def listed_values(axis: str) -> tuple[Any, ...]:
    """Return the values that an axis chooses from; none when its values are numbers."""
    kind = _TYPES.get(axis)
    if kind is bool:
        return (True, False)
    if not (isinstance(kind, type) and issubclass(kind, Choice)):
        return ()
    return (*kind, *own_choices().get(axis, {}).values())


def swept_values(axis: str) -> tuple[Any, ...]:
    """Return what a sweep over everything tries on an axis."""
    return listed_values(axis) or SWEPT_NUMBERS[axis]


def choices(axis: str) -> str:
    """Return the values that an axis takes, as a user types them."""
    if listed := listed_values(axis):
        return " ".join(map(format_value, listed))
    return "a number" if _TYPES[axis] is int else "a number, auto"
