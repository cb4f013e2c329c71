"""Makes what `ncu --csv` prints, and programs that print it in ncu's place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from kgen.profile.metrics import ncu_metrics

HEAD = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
    '"Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"'
)
FAKE_NCU = """#!/bin/sh
# Stands in for ncu: keeps its arguments, prints what it was told to, ends as it was told to.
if [ "$1" = --version ]; then echo 'Version 2025.3.0.0 (build 1)'; exit; fi
here=$(dirname "$0")
echo "$@" >> "$here/asked"
cat "$here/said"
exit "$(cat "$here/code")"
"""


def row(number: int, kernel: str, name: str, value: str, unit: str = "", process: int = 7) -> str:
    """Return one row of ncu's table."""
    cells = (number, process, "python", "host", kernel, 1, 7, "(256, 1, 1)", "(4, 1, 1)", 0, "9.0")
    texts = [*map(str, cells), "Command line profiler metrics", name, unit, value]
    return ",".join(f'"{text}"' for text in texts)


def table(launches: Iterable[tuple[str, Mapping[str, str]]]) -> str:
    """Return ncu's output for launches of kernels, each metric 1 unless it is given."""
    ones = dict.fromkeys(ncu_metrics(), "1")
    rows = [
        row(number, kernel, name, value)
        for number, (kernel, values) in enumerate(launches)
        for name, value in {**ones, **values}.items()
    ]
    return "\n".join(["==PROF== Connected to process 7", HEAD, *rows]) + "\n"


def fake_ncu(folder: Path, said: str = "", code: int = 0) -> Path:
    """Write a program `ncu` that prints the text and ends with the exit code."""
    folder.mkdir(exist_ok=True)
    program = folder / "ncu"
    program.write_text(FAKE_NCU)
    program.chmod(0o755)
    (folder / "code").write_text(str(code))
    (folder / "said").write_text(said)
    return program


def asked(folder: Path) -> list[str]:
    """Return the command lines that the program in `folder` was called with."""
    return (folder / "asked").read_text().splitlines()
