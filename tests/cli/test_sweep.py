"""The command that sweeps, on the CPU: its rows, continuing, and what a user can get wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kgen.store.database import open_store
from kgen.store.measurement import Measurement
from tests.cli.conftest import Ended

Call = Callable[..., Ended]

SMALL = "sweep --on cpu --rows 3 --cols 5 --variants v5 --axis threads=32,64".split()


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The database that the commands use."""
    path = tmp_path / "rows.sqlite"
    monkeypatch.setenv("KGEN_DB", str(path))
    return path


def rows_in(db: Path) -> list[Measurement]:
    with open_store(db, read_only=True) as store:
        return store.select()


@pytest.mark.usefixtures("cxx")
@pytest.mark.parametrize("options", [(), ("--no-prune",)])
def test_the_same_command_measures_nothing_twice(
    call: Call, db: Path, options: tuple[str, ...]
) -> None:
    first = call(*SMALL, *options)
    again = call(*SMALL, *options)
    assert first.code == again.code == 0 and first.out == again.out
    assert [row.variant for row in rows_in(db)] == ["v5:threads=32", "v5:threads=64"]
