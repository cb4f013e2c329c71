"""Lays out a rendered file: leaves out what nothing uses, indents by braces, breaks long lines.

So templates may define all that they have, and need no care for indentation.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

MAX_LINE = 100
INDENT = " " * 4
# An expression of a template that has no value; a line of nothing else is no line.
NOTHING = "\0"
# What a file takes of the standard headers.
_INCLUDED = {
    "cfloat": r"(?:FLT|DBL)_\w+",
    "cmath": r"INFINITY|NAN|__expf|(?:exp|exp2|log|fmax|fabs)f?",
    "cstddef": r"size_t",
    "cstdint": r"u?int\w*_t",
}
# The name that a unit defines where nobody outside the file can use it.
_DEFINED = (
    re.compile(r"^constexpr [\w ]+ (\w+) ="),
    re.compile(r"^struct (?:.* )?(\w+) \{"),
    re.compile(r"^using (\w+) ="),
    re.compile(r"^extern __shared__ .*?(\w+)\["),
    re.compile(r"^(?:template <.*?>\s)?(?:__device__|static inline) [^(]*?(\w+)\("),
)


@dataclass
class _Unit:
    """A comment, directive or definition at the top level of a file, with the comment above it."""

    lines: list[str] = field(default_factory=list)
    is_apart: bool = False

    @property
    def code(self) -> str:
        return "\n".join(filter(None, map(_code, self.lines)))

    def is_used(self, below: str) -> bool:
        code = self.code
        if header := re.match(r"#include <(\w+)>", code):
            return bool(re.search(rf"\b(?:{_INCLUDED[header[1]]})\b", below))
        names = [found[1] for pattern in _DEFINED if (found := pattern.match(code))]
        return not names or bool(re.search(rf"\b{names[0]}\b", below))


def laid_out(text: str) -> str:
    """Return the text of a file, ended by a newline, from what the templates gave."""
    lines = (line.rstrip() for line in text.split("\n") if line.strip() != NOTHING)
    units = _used(list(_units(line.replace(NOTHING, "") for line in lines)))
    joined = "".join(
        "\n" * (unit.is_apart and number > 0) + "\n".join(unit.lines) + "\n"
        for number, unit in enumerate(units)
    )
    return "\n".join(map(_broken, _indented(joined.rstrip("\n").split("\n")))) + "\n"


def _units(lines: Iterable[str]) -> Iterator[_Unit]:
    """Yield the units of a file; blank lines stay inside them only."""
    unit, depth, is_apart = _Unit(), 0, False
    for line in lines:
        code = _code(line)
        if not line.strip():
            if depth > 0:
                unit.lines.append("")
                continue
            if unit.lines:  # a comment that belongs to nothing
                yield unit
                unit = _Unit()
            is_apart = True
            continue
        if not unit.lines:
            unit.is_apart, is_apart = is_apart, False
        unit.lines.append(line)
        depth += code.count("{") - code.count("}")
        if depth == 0 and (code.endswith((";", "}")) or code.startswith("#include")):
            yield unit
            unit = _Unit()
    if unit.lines:
        yield unit


def _used(units: list[_Unit]) -> list[_Unit]:
    """Return the units without the definitions that nothing below them uses."""
    kept: list[_Unit] = []
    below, is_apart = "", False
    for unit in reversed(units):
        if unit.is_used(below):
            kept.append(unit)
            below += unit.code + "\n"
    kept.reverse()
    for before, unit in itertools.pairwise(units):
        is_apart |= unit.is_apart and before not in kept
        if unit in kept:
            unit.is_apart |= is_apart
            is_apart = False
    return kept


def _code(line: str) -> str:
    """Return what a line has beside a comment."""
    return line.partition("//")[0].strip()


def _indented(lines: list[str]) -> Iterator[str]:
    """Yield the lines indented by the braces around them, and further where one goes on."""
    depth, goes_on = 0, False
    for number, line in enumerate(lines):
        text, code = line.strip(), _code(line)
        if not text or (text.startswith(("#", "//")) and depth == 0):
            if text or not _opens_or_closes(lines, number):
                yield text
            continue
        if code.startswith("#"):
            yield text
            continue
        closing = len(code) - len(code.lstrip("}"))
        yield INDENT * (depth - closing + goes_on) + text
        depth += code.count("{") - code.count("}")
        if code:
            goes_on = not code.endswith((";", "{", "}")) and not code.startswith("template <")


def _opens_or_closes(lines: list[str], number: int) -> bool:
    """Whether a blank line follows the start of a block, precedes its end, or another blank one."""
    before, after = _code(lines[number - 1]), _code(lines[number + 1])
    return before.endswith("{") or after.startswith("}") or not lines[number - 1].strip()


def _broken(line: str) -> str:
    """Break a line of code that is too long after a comma, a semicolon, a long name or a `=`.

    A comment at its end goes above it.
    """
    code, _, comment = line.partition("  // ")
    if len(line) > MAX_LINE and comment and code.strip():
        indent = code[: len(code) - len(code.lstrip())]
        return f"{indent}// {comment}\n{_broken(code)}"
    cut = max(line.rfind(mark, 0, MAX_LINE) for mark in (", ", "; ")) + 1
    cut = cut or line.find("(", MAX_LINE // 2) + 1
    if cut > MAX_LINE and " = " in line[:MAX_LINE]:
        cut = line.rfind(" = ", 0, MAX_LINE) + 2
    if len(line) <= MAX_LINE or not cut or line.lstrip().startswith("//"):
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return f"{line[:cut]}\n{_broken(indent + line[cut:].lstrip())}"
