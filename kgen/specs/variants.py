"""How a variant is written: `v7:items=4,threads=512`, read into a spec and written from one."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any

from kgen.errors import UsageError
from kgen.overlay import OURS, Overlay
from kgen.specs.axes import choices, find_axis, parse_value
from kgen.specs.fields import AXES, ROW_MAP, format_value, row_map_axes, short_name
from kgen.specs.follow import MOVING_AXES, follow
from kgen.specs.rules import require_valid
from kgen.specs.spec import Spec, differences
from kgen.specs.versions import find_version
from kgen.text import names_a_file

MAX_STEM = 120


def parse(text: str, overlay: Overlay = OURS) -> Spec:
    """Read a variant such as `v7` or `v7:items=4,threads=512` into a spec, which may be invalid.

    An axis that is not named follows the named ones where its old value could mean nothing (see
    `follow`). Raises UsageError for an unknown version, axis or value, with the nearest known.
    """
    return apply(*settings(text, overlay))


def settings(text: str, overlay: Overlay = OURS) -> tuple[Spec, dict[str, Any]]:
    """Return a variant's version and the axes that it sets. Raises UsageError as `parse` does.

    A short word for several axes is replaced by them; one that is named itself wins.
    """
    name, _, rest = text.strip().partition(":")
    base = _version(name.strip(), rest)
    items = [item.strip() for item in rest.split(",") if item.strip()]
    changes: dict[str, Any] = {}
    for axis, value in (_setting(item, overlay) for item in items):
        if axis in changes:
            raise UsageError(f"{text!r} sets {short_name(axis)} twice; name it once")
        changes[axis] = value
    if ROW_MAP in changes:
        changes = {**row_map_axes(changes.pop(ROW_MAP), overlay), **changes}
    return base.replace(overlay=overlay), changes


def checked(text: str, overlay: Overlay = OURS) -> Spec:
    """Read a variant as `parse` does; raise UsageError when the rules refuse it."""
    spec = parse(text, overlay)
    require_valid(spec)
    return spec


def apply(base: Spec, changes: dict[str, Any]) -> Spec:
    """Set the named axes on a version's spec and let the others follow."""
    return follow(base.replace(**changes), base, frozenset(changes))


def _version(name: str, settings: str) -> Spec:
    if names_a_file(name):
        raise UsageError(f"{name} is a file, whose header fixes its axes; leave {settings} out")
    if not name or "=" in name:
        problem = (
            f"there is no version {name!r}; a variant is written VERSION:AXIS=VALUE,AXIS=VALUE"
        )
        raise UsageError(f"{problem}, such as v7:items=4,threads=512")
    if "/" in name or "." in name:
        raise UsageError(f"there is no version {name!r}; a file of source is named .cu or .cpp")
    return find_version(name).spec


def _setting(text: str, overlay: Overlay) -> tuple[str, Any]:
    key, equals, value = (part.strip() for part in text.partition("="))
    axis = find_axis(key)
    if not equals or not value:
        raise UsageError(f"{text!r} sets nothing; write {key}=VALUE: {choices(axis, overlay)}")
    return axis, parse_value(axis, value, overlay)


def spelling(spec: Spec, named: Collection[str] = ()) -> str:
    """Write a spec as the shortest variant that names some axes and reads back as the same spec."""
    base = find_version(spec.version).spec.replace(overlay=spec.overlay)
    different = differences(base, spec)
    changes = {axis: getattr(spec, axis) for axis in AXES if axis in different or axis in named}
    # An axis that would follow the others away from its value in the version is named too.
    changes |= {axis: new for axis, (_, new) in differences(apply(base, changes), spec).items()}
    for axis in [axis for axis in changes if axis in MOVING_AXES and axis not in named]:
        shorter = {name: value for name, value in changes.items() if name != axis}
        if vars(apply(base, shorter)) == vars(spec):
            changes = shorter
    if not changes:
        return spec.version
    return f"{spec.version}:" + ",".join(
        f"{short_name(axis)}={format_value(value)}" for axis, value in changes.items()
    )


def stem(variant: str) -> str:
    """Return the file stem and kernel symbol of a spelling: `softmax_v7_items4_threads512`.

    It begins with the operation. A name that would be too long to read ends in a digest of the
    variant instead.
    """
    name, _, rest = variant.partition(":")
    axes = dict(setting.split("=") for setting in rest.split(",") if setting)
    head = f"{axes.pop('op', find_version(name).spec.op)}_{name}"
    words = [
        key + (value if value.isdigit() else "_" + value.strip("_")) for key, value in axes.items()
    ]
    full = "_".join([head, *words])
    if len(full) <= MAX_STEM:
        return full
    return f"{head}_{hashlib.sha256(rest.encode()).hexdigest()[:8]}"
