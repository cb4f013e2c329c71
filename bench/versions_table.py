"""Prints the table of README.md: mean microseconds of every version in a folder of results.

usage: python bench/versions_table.py [FOLDER]     (bench/versions.sh makes the files)
"""

from __future__ import annotations

import sys
from pathlib import Path

from kgen.evidence.measure import Row
from kgen.evidence.results import read_results


def cell(row: Row) -> str:
    """Return a row's mean time; `-` where the version cannot hold the shape, `*` if host-bound."""
    if row.mean_us is None:
        return "-"
    return f"{row.mean_us:,.1f}{' *' if row.host_bound else ''}"


def table(folder: Path) -> str:
    """Return the times of all results files in `folder` as a Markdown table."""
    columns: dict[str, dict[str, str]] = {}
    for path in sorted(folder.glob("versions_*.json")):
        rows = read_results(path).rows
        columns[f"{rows[0].rows} x {rows[0].cols}"] = {row.variant: cell(row) for row in rows}
    names = next(iter(columns.values()))
    lines = [f"| version | {' | '.join(columns)} |", "|---" + "|---:" * len(columns) + "|"]
    lines += [
        f"| {name} | {' | '.join(column[name] for column in columns.values())} |" for name in names
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(Path(sys.argv[1] if len(sys.argv) > 1 else "bench/results/h200")))
