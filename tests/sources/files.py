"""Files of a user's, as tests need them."""

from __future__ import annotations

from pathlib import Path

from kgen.sources.render import render
from kgen.specs.variants import checked


def edited(tmp_path: Path, variant: str, old: str, new: str) -> Path:
    """Write a variant's source with a text replaced to a file."""
    text = render(checked(variant)).text
    assert old in text
    path = tmp_path / "mine.cu"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path
