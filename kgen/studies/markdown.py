"""A reproduction's result as a section of a Markdown file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
        f"Measured on an {where.device} ({where.arch}), driver {where.driver}, "
        f"{where.toolchain}, kgen {where.kgen}, {where.measured_at}. Times are medians with half "
        "of their 95% interval; ratios are of paired samples, with their 95% interval."
    )


def _section(grid: Grid) -> str:
    notes = "".join(f"\n\n{plain(note)}" for note in grid.notes)
    return f"### {plain(grid.title)}\n\n{table(grid.columns, grid.rows)}{notes}"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a column whose name ends in `>` is set flush right."""
    names = [column.rstrip(">") for column in columns]
    marks = ["---:" if column.endswith(">") else "---" for column in columns]
    return "\n".join([_line(names), f"|{'|'.join(marks)}|", *(_line(row) for row in rows)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(plain, cells))} |"


def plain(words: str) -> str:
    """Return words as Markdown shows them as they are, in one line."""
    one_line = " ".join(words.split())
    return "".join(f"\\{letter}" if letter in "|_*<" else letter for letter in one_line)
