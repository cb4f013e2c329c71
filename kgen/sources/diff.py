"""What differs between two sources: the axes of their specs, and their texts."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kgen.sources.source import Source
from kgen.specs.spec import differences

# Stands for the kernels' name in the lines that are compared.
_NAME = "\0"
# Parts of a header, each to its end: the title, and those that a word begins.
_TITLE = rf"\A// {_NAME}:.*(\n// \S.*)*"
_PART = r"^// ({}) .*(\n//\s{{4,}}.*)*"
# Names, of templates too, and the axes, which are compared by themselves; what follows from axes.
_NAMES = re.compile(_PART.format("variant|spec|parent|rebuild"), re.MULTILINE)
_FOLLOWING = re.compile(_TITLE + "|" + _PART.format("requires|launch"), re.MULTILINE)
_HUNK = re.compile(r"^@@ -(\d+)(.*) \+(\d+)(.*) @@")


@dataclass(frozen=True)
class Difference:
    """What a new source changes against an old one.

    `fields` has the axes that differ, each with its old and new value; `text_diff` the lines of a
    unified diff, without line ends, whose first two name the files. Both are empty where nothing
    differs.
    """

    fields: dict[str, tuple[Any, Any]]
    text_diff: list[str]

    @property
    def is_same(self) -> bool:
        """Whether neither the specs nor the compared texts differ."""
        return not self.fields and not self.text_diff


def compare(old: Source, new: Source, body_only: bool = False) -> Difference:
    """Compare the specs of two sources, and their texts line by line.

    The kernels' names count as equal. The files' headers are left out with `body_only`, and where
    they differ only in names, of templates too, and in what different axes make different there.
    Line numbers remain those of the whole files.
    """
    is_ours = not (old.contract or new.contract)  # of others' files no axes are known
    fields = differences(old.spec, new.spec) if is_ours else {}
    before, after = _Side(old.text, old.stem), _Side(new.text, new.stem)
    is_bare = body_only or before.said(bool(fields)) == after.said(bool(fields))
    starts = (before.body_start, after.body_start) if is_bare else (0, 0)
    lines = difflib.unified_diff(
        before.lines[starts[0] :],
        after.lines[starts[1] :],
        old.shown_name,
        new.shown_name,
        lineterm="",
    )
    text_diff = [
        _HUNK.sub(lambda hunk: _moved(hunk, *starts), line).replace(
            _NAME, (new if line.startswith("+") else old).stem
        )
        for line in lines
    ]
    return Difference(fields, text_diff)


class _Side:
    """A text to compare: its `lines`, in which one word stands for the kernels' name."""

    def __init__(self, text: str, stem: str) -> None:
        self.lines = re.sub(rf"(?<!\w){stem}(?![^\W_])", _NAME, text).splitlines()
        header = itertools.takewhile(lambda line: line.startswith("//"), self.lines)
        self.header = "\n".join(header)

    @property
    def body_start(self) -> int:
        """How many lines the header has: the comment that a file begins with."""
        return len(self.header.splitlines())

    def said(self, beside_axes: bool) -> str:
        """Return what the header says, wherever lines are broken: not the names, nor the axes.

        With `beside_axes` what follows from these is left out, too.
        """
        header = _NAMES.sub("", self.header)
        if beside_axes:
            header = _FOLLOWING.sub("", header)
        return " ".join(header.replace("//", "").split())


def _moved(hunk: re.Match[str], old_start: int, new_start: int) -> str:
    """Return a hunk's heading with its line numbers moved by those of the headers."""
    old, old_length, new, new_length = hunk.groups()
    return f"@@ -{int(old) + old_start}{old_length} +{int(new) + new_start}{new_length} @@"


def styled(lines: Iterable[str]) -> list[tuple[str, str]]:
    """Return each line of a unified diff with the Rich style to print it in."""
    styles = {"+": "green", "-": "red", "@": "cyan"}
    return [
        (line, "bold" if number < 2 else styles.get(line[:1], ""))
        for number, line in enumerate(lines)
    ]
