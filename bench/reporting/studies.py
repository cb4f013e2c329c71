"""The section on the studies: their tables and statements on the machine at hand."""

from __future__ import annotations

from pathlib import Path

from kgen.studies.markdown import markdown
from kgen.studies.result import StudyResult, read_result
from reporting.lengths import length_plots
from reporting.page import Section, image, paragraphs


def studies_section(path: Path, title: str) -> Section:
    """Return the section of what `kgen reproduce --out` wrote."""
    result = read_result(path)
    plots = length_plots(result)
    images = [image(name, f"times over the row length, {Path(name).stem}") for name in plots]
    return Section(title, paragraphs(_build(result), *images, markdown(result)), plots)


def _build(result: StudyResult) -> str:
    """Return what the result's own text leaves out of its origin."""
    where = result.provenance
    named = [("templates", where.templates), ("commit", where.commit)] if where else []
    words = [f"{name} {value}" for name, value in named if value]
    return f"Built from {' and '.join(words)}." if words else ""
