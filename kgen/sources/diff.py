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

    With `body_only` the files' headers, which name variant, spec and templates and so differ
    between any two variants, are left out; line numbers remain those of the whole files.
    """
    starts = (_body_start(old.text), _body_start(new.text)) if body_only else (0, 0)
    lines = difflib.unified_diff(
        old.text.splitlines()[starts[0] :],
        new.text.splitlines()[starts[1] :],
        str(old.path or old.filename),
        str(new.path or new.filename),
        lineterm="",
    )
    text_diff = [_HUNK.sub(lambda hunk: _moved(hunk, *starts), line) for line in lines]
    return Difference(differences(old.spec, new.spec), text_diff)


def _body_start(text: str) -> int:
    """Return how many lines the header has: the comment that a file begins with."""
    header = itertools.takewhile(lambda line: line.startswith("//"), text.splitlines())
    return sum(1 for _ in header)


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
