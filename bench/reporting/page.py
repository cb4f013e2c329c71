"""What a page of results is made of: sections with plots, and figures in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kgen.studies.markdown import plain

PLOTS = "plots"
_INTRODUCTION = (
    "# Results\n\n"
    "`python bench/report.py` writes this page and its plots from the files in this folder; a "
    "change made here by hand is lost.\n\n"
    "Not measured: 16-bit types and other GPUs; inputs that are not uniform (they are verified, "
    "not timed); the L2 warm beyond the shapes below; how often a result repeats on another day; "
    "what peers gain by tuning that they do not do by themselves. The `cpu` row is serial C++ on "
    "the host of the GPU, for which no L2 is warm or cold."
)


@dataclass(frozen=True)
class Section:
    """A part of the page: `text` is Markdown with headings from the third level on.

    `plots` has the SVG texts by the names of their files.
    """

    title: str
    text: str
    plots: Mapping[str, str] = field(default_factory=dict)


def page(sections: Mapping[Path, Section]) -> str:
    """Return the page; the sections are by the files, relative to the page's, that they tell of."""
    contents = [f"- [{plain(s.title)}](#{_anchor(s.title)})" for s in sections.values()]
    parts = [_INTRODUCTION, "\n".join(contents)]
    for path, section in sections.items():
        source = f"From [`{path.as_posix()}`]({path.as_posix()})."
        parts.append(f"## {plain(section.title)}\n\n{source}\n\n{section.text.strip()}")
    return "\n\n".join(filter(None, parts)) + "\n"


def _anchor(title: str) -> str:
    """Return the name that Markdown viewers give to a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def image(name: str, words: str) -> str:
    """Return the reference to a plot; `words` are for those who cannot see it."""
    return f"![{plain(words)}]({PLOTS}/{name})"


def bullets(items: Iterable[str]) -> str:
    """Return a list of plain words; an empty one is nothing."""
    return "\n".join(f"- {plain(item)}" for item in items)


def paragraphs(*parts: str) -> str:
    """Join the parts that have text."""
    return "\n\n".join(filter(None, parts))


def number(value: float) -> str:
    """Return a number with four digits, or all of those before the point."""
    return f"{value:,.0f}" if abs(value) >= 999.95 else f"{value:#.4g}"


def interval(middle: float, low: float, high: float, digits: int = 3) -> str:
    """Return an estimate with its bounds."""
    return f"{middle:.{digits}f} ({low:.{digits}f} - {high:.{digits}f})"
