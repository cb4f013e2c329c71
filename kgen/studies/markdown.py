"""A reproduction's result as a section of a Markdown file."""

from __future__ import annotations

from kgen.studies.grids import Grid, grids
from kgen.studies.result import StudyResult


def markdown(result: StudyResult) -> str:
    """Return the tables of a result in Markdown, under headings of the third level."""
    parts = [_origin(result), *(_section(grid) for grid in grids(result))]
    return "\n\n".join(parts) + "\n"


def _origin(result: StudyResult) -> str:
    """Say where the figures are from, and how to read them."""
    where = result.provenance
    if where is None:
        return "Nothing was timed: the verdicts are on what can be counted and compiled."
    return (
        f"Measured on an {where.device} ({where.arch}), driver {where.driver}, nvcc "
        f"{where.toolchain}, kgen {where.kgen}, {where.measured_at}. Times are medians with half "
        "of their 95% interval; ratios are of paired samples, with their 95% interval."
    )


def _section(grid: Grid) -> str:
    names = [column.rstrip(">") for column in grid.columns]
    marks = ["---:" if column.endswith(">") else "---" for column in grid.columns]
    lines = [_line(names), f"|{'|'.join(marks)}|", *(_line(row) for row in grid.rows)]
    notes = "".join(f"\n\n{_text(note)}" for note in grid.notes)
    return f"### {_text(grid.title)}\n\n" + "\n".join(lines) + notes


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(map(_text, cells))} |"


def _text(words: str) -> str:
    """Return words as Markdown shows them as they are, in one line."""
    one_line = " ".join(words.split())
    return "".join(f"\\{letter}" if letter in "|_*<" else letter for letter in one_line)
