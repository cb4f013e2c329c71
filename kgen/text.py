"""Small helpers for what kgen reads from users and prints to them."""

from __future__ import annotations

import re
from collections.abc import Iterable


def names_a_file(text: str) -> bool:
    """Whether a command's argument is a source file's path rather than a variant."""
    return re.search(r"\.(cu|cpp)(:\w+=[^/]*)?$", text) is not None


def with_name(text: str, file: str, name: str) -> str:
    """Return a compiler's text with another name for a file, or folder/, of where it ran."""
    end = "" if file.endswith("/") else r"\b"
    return re.sub(rf"(?<![\w/.-])(?:\./)?{re.escape(file)}{end}", lambda _: name, text)


def did_you_mean(word: str, known: Iterable[str], listed: Iterable[str] | None = None) -> str:
    """Return `; did you mean 'v7'?` with the nearest known words, whatever their case.

    Where none is near, the known words are listed, or those of them that are `listed`.
    """
    import difflib

    names = {str(name).lower(): str(name) for name in known}  # members of an enumeration, too
    near = (
        [word.lower()]
        if word.lower() in names
        else difflib.get_close_matches(word.lower(), names, n=3, cutoff=0.5)
    )
    if near:
        return f"; did you mean {' or '.join(repr(names[name]) for name in near)}?"
    return f"; known are {', '.join(names.values() if listed is None else listed)}"


def install_hint(extra: str) -> str:
    """Return how to get the packages of one of kgen's extras.

    By its folder and not by its name, which a package of somebody else has on PyPI.
    """
    return f"pip install '.[{extra}]' in kgen's folder"
