"""Small helpers for the sentences that kgen prints."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'v7'?` with the nearest known words, or the list of all of them."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=3, cutoff=0.5)
    if near:
        return f"; did you mean {' or '.join(repr(name) for name in near)}?"
    return f"; known are {', '.join(names)}"
