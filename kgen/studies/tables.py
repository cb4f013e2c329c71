"""The studies' tables: which variants they timed on which shapes, and the times they found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Study(StrEnum):
    """Three studies, of kernels k1 to k4, one long row and v1 to v9; and ours, of v10 to v14."""

    K = "k"
    ONE_ROW = "1d"
    REPORT = "report"
    OURS = "ours"


@dataclass(frozen=True)
class Cell:
    """A variant on a shape. `figure` is the study's own time, as it gives it: one, or a range."""

    variant: str
    rows: int
    cols: int
    figure: tuple[float, ...] = ()


@dataclass(frozen=True)
class Table:
    """Cells that were measured together. Times of the study are in `unit`, taken on `source`."""

    study: Study
    title: str
    cells: tuple[Cell, ...]
    unit: str = "us"
    source: str = "report, on a Tesla T4"


def _cells(rows: int, cols: int, **figures: float | tuple[float, ...]) -> tuple[Cell, ...]:
    """Return the cells of named versions on one shape."""
    return tuple(
        Cell(name, rows, cols, figure if isinstance(figure, tuple) else (figure,))
        for name, figure in figures.items()
    )


def _compared(title: str, rows: int, cols: int, *variants: str) -> Table:
    """Return a table of ours: variants on one shape, which nobody has figures of yet."""
    return Table(Study.OURS, title, _lengths(rows, (cols,), *variants), source="")


def _lengths(rows: int, lengths: tuple[int, ...], *variants: str) -> tuple[Cell, ...]:
    """Return cells without figures for every row length."""
    return tuple(Cell(variant, rows, cols) for cols in lengths for variant in variants)


ONE_ROW_LENGTHS = tuple(2**power for power in range(10, 25))
# Rows that start on a vector boundary, so that only their length differs.
CROSSOVER_LENGTHS = (32, 64, 128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192, 16384)

_MANY_BLOCKS = "v14:blocks_per_row=128,threads=512"
_WIDE_CLUSTER = "v13:blocks_per_row=16,threads=256"

TABLES = (
    Table(
        Study.K,
        "k1 to k4 and the CPU, 512 threads",
        _cells(256, 65536, cpu=232.26, k1=65.68, k2=1.67, k3=3.37, k4=1.32),
        unit="ms",
        source="softmax.cu study, on its own GPU",
    ),
    Table(
        Study.ONE_ROW,
        "One row of N elements",
        _lengths(1, ONE_ROW_LENGTHS, "c1", "t1", "t2"),
        source="",
    ),
    Table(
        Study.REPORT,
        "v1 to v4_opt",
        _cells(1024, 4096, v1=195.85, v2=185.48, v3=147.25, v4=187.14, v4_opt=184.41),
    ),
    Table(
        Study.REPORT,
        "Vector accesses and the register cache",
        _cells(1024, 4096, v3=143.5, v6=180.6, v6_double=191.9, v6_fetch=188.4, v7=141.0),
    ),
    Table(
        Study.REPORT,
        "Medians of a batch of their own",
        _cells(1024, 4096, v4=187.198, v4_opt=184.339, v5=186.100, v6=180.570),
    ),
    Table(
        Study.REPORT,
        "Short rows",
        _cells(1025, 257, v5=16.22, v7=15.10, v8=7.72, v9=20.48),
    ),
    Table(
        Study.REPORT,
        "v9 by its grid",
        (
            Cell("v9:grid=1024", 1024, 257, (17.8, 17.9)),
            Cell("v9", 1024, 257, (20.3, 20.6)),
            Cell("v9:grid=128", 1024, 257, (22.3, 23.1)),
        ),
    ),
    Table(
        Study.REPORT,
        "v7 and v8 on short and long rows",
        _cells(1024, 257, v7=(15.0, 15.5), v8=(7.6, 8.0)) + _cells(1024, 4096, v7=143.3, v8=249.6),
    ),
    Table(
        Study.REPORT,
        "v7 and v8 over the row length",
        _lengths(1024, CROSSOVER_LENGTHS, "v7", "v8"),
        source="",
    ),
    Table(
        Study.REPORT,
        "v3 with 256 threads x 64 values and 512 x 32 (the profiler's times)",
        (
            Cell("v3", 128, 16384, (104.74,)),
            Cell("v3:threads=512", 128, 16384, (107.07,)),
        ),
    ),
    Table(
        Study.REPORT,
        "v2 and v3 where the report profiled them",
        _lengths(128, (4096,), "v2", "v3"),
        source="",
    ),
    Table(
        Study.REPORT,
        "v4_opt and its branching form",
        _lengths(128, (16384,), "v4", "v4_opt", "v4_opt:update=online_branch"),
        source="",
    ),
    _compared(
        "Rows of one vector a lane", 262144, 32, "v7", "v8", "v10:threads_per_row=8,items=auto"
    ),
    _compared("Rows of two vectors a lane", 131072, 128, "v7", "v8", "v10:items=auto"),
    _compared("Rows of 64", 100000, 64, "v7", "v8", "v10:items=auto"),
    _compared("Short odd rows", 65536, 127, "v7", "v8", "v10:items=auto", "v12:items=auto"),
    _compared("Odd rows", 8192, 4097, "v7", "v9", "v11:threads=512"),
    _compared("Long rows", 256, 65536, "v6_double", "v9", "v13:blocks_per_row=16"),
    _compared("Rows of a vocabulary", 64, 151936, "v6_double", "v9", _WIDE_CLUSTER),
    _compared("Few rows", 8, 32000, "v7:threads=1024", "v11:threads=1024", "v13"),
    _compared("One row", 1, 32000, "v7:threads=1024", "v11:threads=1024", "v13", "v14"),
    _compared("One row of 131072", 1, 131072, "v6_double", "t1", "v14", _WIDE_CLUSTER),
    _compared("One row of a million", 1, 2**20, "c1", "t1", "v9", _MANY_BLOCKS),
)


def tables(studies: frozenset[Study]) -> tuple[Table, ...]:
    """Return the tables of some studies, in the order in which they are shown."""
    return tuple(table for table in TABLES if table.study in studies)
