"""The command line, called in this process where that is enough and in one of its own elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kgen import cli
from kgen.toolchain import find


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, all of it, as JSON."""
        return json.loads(self.out)

    def rows(self) -> list[list[str]]:
        """The words of every printed line."""
        return [line.split() for line in self.out.splitlines()]


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Call `kgen ARGUMENT...` in this process; the test's folder is the working directory.

    What is no KgenError comes out as the exception that it is.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["kgen", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ended(ended.value.code, printed.out, printed.err)

    return run


@pytest.fixture
def spawn(tmp_path: Path) -> Callable[..., Ended]:
    """Run `kgen ARGUMENT...` as a process, in the test's folder, with changes to the environment.

    A variable set to None is taken out of the environment.
    """

    def run(*arguments: object, stdout: int = subprocess.PIPE, **changes: str | None) -> Ended:
        environment = {**os.environ, **changes}
        ran = subprocess.run(
            [sys.executable, "-m", "kgen", *map(str, arguments)],
            cwd=tmp_path,
            env={name: value for name, value in environment.items() if value is not None},
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
        return Ended(ran.returncode, ran.stdout or "", ran.stderr)

    return run


@pytest.fixture
def no_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without an nvcc."""
    monkeypatch.delenv("KGEN_NVCC", raising=False)
    monkeypatch.setattr(find, "_candidates", lambda name: iter(()))


@pytest.fixture
def edited(tmp_path: Path) -> Callable[[str, str, str], Path]:
    """Write a version's `.cu` with a text replaced, as a user's own file."""
    import kgen

    def write(variant: str, old: str, new: str) -> Path:
        source = kgen.render(variant)
        assert old in source.text
        path = tmp_path / f"my_{source.filename}"
        path.write_text(source.text.replace(old, new))
        return path

    return write
