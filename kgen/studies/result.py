"""What a reproduction found: plain values that are saved as JSON, read back and printed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from kgen.errors import UsageError
from kgen.files import write_atomically
from kgen.store.measurement import Outcome, Provenance
from kgen.studies.counts import Accesses
from kgen.studies.crossover import CrossoverPoint
from kgen.studies.registers import Compiled
from kgen.studies.tables import Study
from kgen.studies.verdicts import Conclusion, Judgement
from kgen.timing.statistics import Ratio

FORMAT = 1


@dataclass(frozen=True)
class Timing:
    """A variant's time on a shape with the L2 in a state: the median and its 95% interval.

    Without times there is the reason, and `outcome` is None when it was not tried.
    """

    l2: str
    outcome: Outcome | None
    median_us: float | None = None
    low_us: float | None = None
    high_us: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class CellResult:
    """A cell of a study's table: `figure` is the study's own, in the table's unit."""

    variant: str
    rows: int
    cols: int
    figure: tuple[float, ...]
    timings: tuple[Timing, ...]


@dataclass(frozen=True)
class TableResult:
    """A study's table with what was measured here."""

    study: Study
    title: str
    unit: str
    source: str
    cells: tuple[CellResult, ...]


@dataclass(frozen=True)
class PartResult:
    """A part of a statement and its judgement by the state of the L2 cache.

    `measured` says what the figure is: `v2 / v1 at 1024 x 4096`.
    """

    words: str
    measured: str
    judgements: dict[str, Judgement]


@dataclass(frozen=True)
class StatementResult:
    """A statement and its verdict by the state of the L2 cache."""

    number: int
    study: Study
    words: str
    verdicts: dict[str, Conclusion]
    parts: tuple[PartResult, ...]


@dataclass(frozen=True)
class Reading:
    """The paired ratio of a comparison, and what it says; without a ratio, why there is none."""

    ratio: Ratio | None
    words: str


@dataclass(frozen=True)
class ComparisonResult:
    """Two variants that differ in one thing, and the reading by the state of the L2 cache."""

    a: str
    b: str
    rows: int
    cols: int
    differ: str
    readings: dict[str, Reading]


@dataclass(frozen=True)
class DissectionResult:
    """A question and the comparisons that answer it.

    `metrics` are those of the profiler beside them: `VARIANT at ROWS x COLS` -> metric -> value.
    """

    title: str
    question: str
    comparisons: tuple[ComparisonResult, ...]
    metrics: dict[str, dict[str, float]]


@dataclass(frozen=True)
class SweepResult:
    """Two variants over row lengths: by the state of the L2, the crossovers; or why there is none.

    The ratios a / b are by row length, in digits as JSON has it.
    """

    study: Study
    a: str
    b: str
    rows: int
    ratios: dict[str, dict[str, Ratio]]
    crossovers: dict[str, tuple[CrossoverPoint, ...]]
    reasons: dict[str, str]


@dataclass(frozen=True)
class StudyResult:
    """All that a reproduction found. `provenance` is None where nothing was timed.

    `l2_states` are those that were asked for; facts are the same in all of them.
    """

    provenance: Provenance | None
    arch: str
    l2_states: tuple[str, ...]
    tables: tuple[TableResult, ...]
    statements: tuple[StatementResult, ...]
    dissections: tuple[DissectionResult, ...]
    sweeps: tuple[SweepResult, ...]
    counts: tuple[Accesses, ...]
    registers: tuple[Compiled, ...]

    format: int = FORMAT


def write_result(path: Path, result: StudyResult) -> None:
    """Write a result as JSON, in one step. Raises UsageError if the file cannot be written."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")


def read_result(path: Path) -> StudyResult:
    """Return what `write_result` wrote. Raises UsageError if the file is not that."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=StudyResult)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no result of kgen reproduce: {error}") from None
    if found.format != FORMAT:
        raise UsageError(
            f"{path} is a result of kgen reproduce in format {found.format}; "
            f"this kgen reads format {FORMAT}"
        )
    return found
