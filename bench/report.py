"""Rebuilds RESULTS.md and its plots from the result files of a folder.

usage: python bench/report.py [FOLDER] [--check]

Each file is optional: what is not there has no section. Plots of sections that are gone are
deleted. With --check nothing is written; the exit code is 1, and the names are told, when a file is
not what it would become.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from reporting.measured import bench_section
from reporting.objects import object_section, search_section
from reporting.page import PLOTS, Section, page
from reporting.proof import agreement_section, mutants_section
from reporting.studies import studies_section
from reporting.sweeps import sweep_section

from kgen.errors import CheckFailed, KgenError, UsageError
from kgen.files import write_atomically

RESULTS = Path(__file__).parent / "results"
PAGE = "RESULTS.md"
# What makes a section of a file, by the file's name in the folder; in the page's order.
SECTIONS: tuple[tuple[str, Callable[[Path], Section]], ...] = (
    ("h200/bench_cold.json", partial(bench_section, title="Softmax from memory, L2 cold")),
    ("h200/bench_short.json", partial(bench_section, title="Short rows from memory, L2 cold")),
    ("h200/bench_limit.json", partial(bench_section, title="Long, few and odd rows, L2 cold")),
    ("h200/bench_warm.json", partial(bench_section, title="Softmax on the same matrix, L2 warm")),
    ("h200/bench_report.json", partial(bench_section, title="Launch by launch, as the report")),
    ("h200/studies.json", partial(studies_section, title="The studies on this machine")),
    ("h200/studies_ours.json", partial(studies_section, title="Our study, of v10 to v14")),
    ("h200/sweep_*.json", sweep_section),
    ("h200/search.json", partial(search_section, title="Halving against the full search")),
    ("h200/revision.json", partial(object_section, title="Files of today beside a revision")),
    ("h200/kernel_tuner.json", partial(object_section, title="Beside Kernel Tuner")),
    ("h200/pytorch.json", partial(object_section, title="Beside PyTorch, element by element")),
    ("h200/agreement.json", partial(agreement_section, title="What NVIDIA's tools say")),
    ("mutants.json", partial(mutants_section, title="Mutants")),
    ("speed_2_cores.json", partial(object_section, title="What kgen itself costs, 2 cores")),
    ("compile_speed_2_cores.json", partial(object_section, title="Compiling many, 2 cores")),
)


def build(folder: Path) -> dict[Path, str]:
    """Return the texts of the page and its plots by their paths, from the files in `folder`.

    Raises UsageError for a file that cannot be read, or when there is no folder.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}; name one that holds result files")
    sections = {
        path.relative_to(folder): make(path)
        for pattern, make in SECTIONS
        for path in sorted(folder.glob(pattern))
    }
    plots = {
        folder / PLOTS / name: svg
        for section in sections.values()
        for name, svg in section.plots.items()
    }
    return {folder / PAGE: page(sections), **plots}


def left_over(folder: Path, built: dict[Path, str]) -> list[Path]:
    """Return the plots in the folder that belong to no section."""
    return sorted(path for path in (folder / PLOTS).glob("*.svg") if path not in built)


def write(folder: Path) -> None:
    """Write the page and its plots, and delete the plots of sections that are gone."""
    built = build(folder)
    for path, text in built.items():
        write_atomically(path, text)
    for path in left_over(folder, built):
        path.unlink()


def check(folder: Path) -> None:
    """Raise CheckFailed, with the names, when files are not what they would become."""
    built = build(folder)
    differ = [path for path, text in built.items() if not _holds(path, text)]
    names = [str(path.relative_to(folder)) for path in differ + left_over(folder, built)]
    if names:
        raise CheckFailed(
            f"not what the files in {folder} give: {', '.join(names)}; run python bench/report.py"
        )


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line says, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=RESULTS)
    parser.add_argument("--check", action="store_true", help="only say what would change")
    options = parser.parse_args(arguments)
    try:
        (check if options.check else write)(options.folder)
    except KgenError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
