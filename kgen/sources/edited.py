"""Reads a generated file back, edited or not: its header names the spec that it came from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from kgen.errors import UsageError
from kgen.overlay import OURS, Overlay
from kgen.sources.constants import disagreements
from kgen.sources.kernels import kernels
from kgen.sources.source import Source
from kgen.specs.axes import listed_values, parse_value
from kgen.specs.fields import AXES, ROW_MAP, row_map_axes
from kgen.specs.rules import require_valid
from kgen.specs.spec import Spec
from kgen.specs.versions import find_version

# Axes that files of before do not name; what their versions have of them is what the files do.
NEWER = ("row_io", "next_row", "rows_at_once", "row_order", "loads", "stores", "dtype", "out_dtype")


def read_source(path: Path, overlay: Overlay = OURS) -> Source:
    """Read a generated (and perhaps edited) `.cu` or `.cpp` with the spec of its header.

    Launch shape and buffers follow from the header; what is compiled and judged is the file's own
    text. Raises UsageError when the file cannot be read, has no kgen header, or has a constant
    that the header's spec makes another.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"{path} cannot be read: {reason}") from None
    return source_of(text, path, overlay)


def source_of(text: str, path: Path, overlay: Overlay = OURS) -> Source:
    """Return the source with this text, which errors call by its path, as `read_source` does."""
    header = _header(text)
    title = re.match(r"//\s*(\w+):", header)
    version = re.search(r"^// variant\s+(\w+)", header, re.MULTILINE)
    if not title or not version:
        raise UsageError(
            f"{path} has no kgen header (a first comment with the stem, variant and spec); "
            "start from a file that `kgen build` wrote and keep its header, or have kgen read a "
            f"file of your own: kgen adopt {path}"
        )
    spec = _spec(path, header, version[1], overlay)
    stem = title[1]
    symbols = tuple(stem + kernel.suffix for kernel in kernels(spec))
    for symbol in symbols:
        if not re.search(rf"\b{symbol}\s*\(", text):
            raise UsageError(f"{path} defines no {symbol}, which the stem in its header promises")
    if wrong := disagreements(text, spec):
        raise UsageError(f"{path}: {'; '.join(wrong)}")
    return Source(spec, stem, text, symbols, path)


def _value(path: Path, axis: str, text: str, overlay: Overlay) -> Any:
    try:
        return parse_value(axis, text, overlay)
    except UsageError as error:
        hint = "; kgen --templates DIR adds the choices of a folder" if listed_values(axis) else ""
        raise UsageError(f"{path}: {error}{hint}") from None


def _header(text: str) -> str:
    lines = text.lstrip().splitlines()
    end = next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))
    return "\n".join(lines[:end])


def _spec(path: Path, header: str, version: str, overlay: Overlay) -> Spec:
    found = re.search(r"^// spec\s+(.*(?:\n//\s{4,}.*)*)", header, re.MULTILINE)
    body = found[1] if found else ""
    values: dict[str, Any] = {}
    for name, text in re.findall(r"(\w+)=(\S+)", body):
        if name not in (*AXES, ROW_MAP):
            raise UsageError(f"{path}: its header's spec names an axis {name!r} that kgen lacks")
        values[name] = _value(path, name, text, overlay)
    # Older headers have the short word for the axes of the row map, and none of those since.
    newer = {*NEWER, *(("op", *row_map_axes(values[ROW_MAP])) if ROW_MAP in values else ())}
    missing = [name for name in AXES if name not in values and name not in newer]
    if missing:
        raise UsageError(f"{path}: its header's spec lacks {', '.join(missing)}; build it anew")
    spec = find_version(version).spec.replace(overlay=overlay, **values)
    require_valid(spec)
    if spec.in_registers and spec.items_per_thread is None:
        raise UsageError(f"{path}: its header has items_per_thread=auto; write the code's number")
    return spec
