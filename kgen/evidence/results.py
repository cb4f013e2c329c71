"""Files of measured rows, which name the machine and the method that they came from."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kgen import __version__
from kgen.errors import UsageError
from kgen.evidence.measure import Outcome, Row
from kgen.files import write_atomically
from kgen.gpu import DeviceInfo, device_info
from kgen.sources.render import template_hash
from kgen.toolchain import find_nvcc

FORMAT = 1


@dataclass(frozen=True)
class Machine:
    """Where and with what rows were measured.

    `toolkit` is nvcc's version, `templates` the hash in the headers of the sources, `commit` that
    of kgen's repository ('' when it is not known), and `date` the time in UTC, in ISO 8601.
    """

    gpu: DeviceInfo
    toolkit: str
    kgen: str
    templates: str
    commit: str
    date: str


@dataclass(frozen=True)
class Results:
    """The contents of a results file."""

    machine: Machine
    method: str
    rows: tuple[Row, ...]


def this_machine(commit: str = "") -> Machine:
    """Describe this machine, now. Raises MissingTool without a GPU or nvcc."""
    return Machine(
        gpu=device_info(),
        toolkit=find_nvcc().version,
        kgen=__version__,
        templates=template_hash(),
        commit=commit,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def write_results(path: Path, rows: Iterable[Row], machine: Machine, method: str) -> None:
    """Write the rows as JSON, in one step. Raises UsageError if the file cannot be written."""
    content = {"format": FORMAT, **asdict(Results(machine, method, tuple(rows)))}
    text = json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    write_atomically(path, text)


def read_results(path: Path) -> Results:
    """Return what `write_results` wrote. Raises UsageError if the file is not that."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read results from {path}: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{path} is not a results file: it is not JSON") from None
    try:
        return _parse(content)
    except (LookupError, TypeError, ValueError) as error:
        raise UsageError(
            f"{path} is not a results file of format {FORMAT}, which this kgen reads ({error})"
        ) from None


def _parse(content: Any) -> Results:
    if content["format"] != FORMAT:
        raise ValueError(f"its format is {content['format']}")
    machine = content["machine"]
    rows = (Row(**row | {"outcome": Outcome(row["outcome"])}) for row in content["rows"])
    gpu = DeviceInfo(**machine["gpu"])
    return Results(Machine(**machine | {"gpu": gpu}), content["method"], tuple(rows))
