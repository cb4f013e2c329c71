"""Small helpers for what kgen reads from users and prints to them."""

from __future__ import annotations

import re
from collections.abc import Iterable


def names_a_file(text: str) -> bool:
    """Whether a command's argument is a source file's path rather than a variant."""
    return text.endswith((".cu", ".cpp"))


def with_name(text: str, file: str, name: str) -> str:
    """Return a compiler's text with another name for a file, or folder/, of where it ran."""
    end = "" if file.endswith("/") else r"\b"
    return re.sub(rf"(?<![\w/.-])(?:\./)?{re.escape(file)}{end}", lambda _: name, text)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'v7'?` with the nearest known words, or the list of all of them."""
    import difflib

    names = list(map(str, known))  # members of an enumeration, too
    near = difflib.get_close_matches(word, names, n=3, cutoff=0.5)
    if near:
        return f"; did you mean {' or '.join(repr(name) for name in near)}?"
    return f"; known are {', '.join(names)}"


def install_hint(extra: str) -> str:
    """Return how to get the packages of one of kgen's extras.

    By its folder and not by its name, which a package of somebody else has on PyPI.
    """
    return f"pip install '.[{extra}]' in kgen's folder"
