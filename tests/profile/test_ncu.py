"""Where ncu is found, how it is called, and what is made of its failures."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kgen.errors import CheckFailed, MissingTool
from kgen.profile.job import ProfileTarget
from kgen.profile.metrics import ncu_metrics
from kgen.profile.ncu import command, find_ncu, watched
from kgen.toolchain.find import Tool
from tests.profile.tables import asked, fake_ncu, table

JOBS = [ProfileTarget("v2", 128, 4096), ProfileTarget("my.cu", 1, 257)]


@pytest.fixture
def ncu(tmp_path: Path) -> Callable[..., Tool]:
    """Make an ncu that prints a text."""

    def make(said: str = "", code: int = 0) -> Tool:
        return Tool(fake_ncu(tmp_path / "bin", said, code), "2025.3", "PATH", "")

    return make


@pytest.mark.usefixtures("no_ncu")
class TestFinding:
    """The places, best first."""

    def test_order_of_the_places(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Places are added from the last to the first."""
        monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
        places = [
            ("nsight-compute/2024.3.2", str(tmp_path / "nsight-compute")),
            ("nsight-compute/2025.10.0", str(tmp_path / "nsight-compute")),
            ("local/cuda-9.2/bin", str(tmp_path / "local")),
            ("local/cuda-13.0/bin", str(tmp_path / "local")),
            ("home/bin", "$CUDA_HOME"),
            ("bin", "PATH"),
        ]
        for place, found_by in places:
            (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
            program = fake_ncu(tmp_path / place)
            found = find_ncu()
            assert (found.path, found.found_by, found.version) == (program, found_by, "2025.3.0.0")
        (tmp_path / "bin/ncu").write_text("#!/no/such/shell\n")
        assert find_ncu().found_by == "$CUDA_HOME"

    def test_named_program_is_not_replaced(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fake_ncu(tmp_path / "bin")
        monkeypatch.setenv("KGEN_NCU", str(fake_ncu(tmp_path / "mine")))
        assert find_ncu().path == tmp_path / "mine/ncu"
        monkeypatch.setenv("KGEN_NCU", "/no/such/ncu")
        with pytest.raises(MissingTool, match=r"KGEN_NCU=/no/such/ncu .* unset"):
            find_ncu()

    def test_missing_ncu_says_how_to_get_it(self) -> None:
        with pytest.raises(MissingTool, match=r"no ncu on PATH.*Nsight Compute.*KGEN_NCU"):
            find_ncu()


@pytest.mark.parametrize(("cache", "control"), [("cold", "all"), ("warm", "none")])
def test_command_line(ncu: Callable[..., Tool], cache: str, control: str) -> None:
    tool = ncu()
    words = command(tool, JOBS, cache)
    assert words[:2] == [str(tool.path), "--csv"]
    told = " ".join(words)
    for option in (
        "--clock-control none",
        f"--cache-control {control}",
        "--replay-mode kernel",
        "--print-units base",
        f"--metrics {','.join(ncu_metrics())}",
    ):
        assert f" {option} " in told
    *_, program, option, _, code, one, other = words
    assert (program, option, one, other) == (sys.executable, "-P", "v2@128x4096", "my.cu@1x257")
    assert code.endswith("from kgen.profile.launch import main; main()")


def test_measure_calls_it_once(ncu: Callable[..., Tool]) -> None:
    text = table([("softmax_v2", {})])
    tool = ncu(text)
    assert watched(tool, JOBS, "cold", 60) == text
    (line,) = asked(tool.path.parent)
    assert line.endswith("v2@128x4096 my.cu@1x257")


def test_failures_of_the_program_are_told_in_its_words(ncu: Callable[..., Tool]) -> None:
    said = "==PROF== x\nkgen: my.cu@1x257 is wrong: row 0\n==ERROR== The application returned 1"
    with pytest.raises(CheckFailed, match=r"^my\.cu@1x257 is wrong: row 0$"):
        watched(ncu(said, code=1), JOBS, "cold", 60)
    with pytest.raises(CheckFailed, match=r"exit code 9: ncu: cannot start"):
        watched(ncu("hm\nncu: cannot start\n", code=9), JOBS, "cold", 60)
    with pytest.raises(CheckFailed, match=r"exit code 9: it said nothing"):
        watched(ncu("", code=9), JOBS, "cold", 60)


def test_what_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    program = tmp_path / "ncu"
    program.write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {tmp_path}/child\nwait\n")
    program.chmod(0o755)
    with pytest.raises(CheckFailed, match=r"longer than 0\.5 s .*--timeout"):
        watched(Tool(program, "1", "PATH", ""), JOBS, "cold", 0.5)
    child = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    deadline = time.monotonic() + 5
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(child)


def _runs(stat: Path) -> bool:
    """Whether a process is there and no zombie."""
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
