"""Where, when and with what a run measures."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

import kgen
from kgen.errors import MissingTool, UsageError
from kgen.gpu import DeviceInfo
from kgen.overlay import OURS
from kgen.sources.render import template_hash
from kgen.timing import provenance
from kgen.timing.provenance import checkout_commit, this_run

H200 = DeviceInfo("NVIDIA H200", "sm_90", 132, 60 << 20, 140 << 30, "580.65.06 (CUDA 13.0)")


def no_gpu() -> None:
    raise MissingTool("no GPU found")


def test_on_the_cpu(cxx: None) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    first, second = this_run("cpu"), this_run("cpu")
    assert first.device == "cpu" and first.device_uuid == first.driver == ""
    assert re.search(r"\d+\.\d+", first.toolchain) and first.arch
    assert (first.kgen, first.templates) == (kgen.__version__, template_hash(OURS))
    assert before <= datetime.fromisoformat(first.measured_at) <= datetime.now(UTC)
    assert re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{4}", first.run) and first.run != second.run
    assert first.run.startswith(first.measured_at[:10].replace("-", ""))


def test_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "device_info", lambda: H200)
    monkeypatch.setattr(provenance, "device_uuid", lambda: "GPU-1b0c")
    monkeypatch.setattr(provenance, "find_nvcc", lambda: SimpleNamespace(version="13.0.88"))
    monkeypatch.setenv("KGEN_COMMIT", "abc123")
    run = this_run()
    assert (run.device, run.device_uuid, run.arch) == ("NVIDIA H200", "GPU-1b0c", "sm_90")
    assert (run.driver, run.toolchain) == ("580.65.06 (CUDA 13.0)", "nvcc 13.0.88")
    assert run.commit == "abc123"


def test_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "device_info", no_gpu)
    with pytest.raises(MissingTool, match="no GPU"):
        this_run()
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    with pytest.raises(MissingTool, match="CXX names"):
        this_run("cpu")


def test_another_place() -> None:
    with pytest.raises(UsageError, match="'moon': kernels run on cpu or gpu"):
        this_run("moon")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a kgen that lies in a git repository, in which somebody has committed."""
    if not shutil.which("git"):
        pytest.skip("no git on PATH")
    file = tmp_path / "site" / "provenance.py"
    file.parent.mkdir()
    file.touch()
    monkeypatch.setattr(provenance, "__file__", str(file))
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "KGEN_COMMIT"):
        monkeypatch.delenv(name, raising=False)
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    return file


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_commit_is_the_checkouts(installed: Path) -> None:
    git(installed.parent, "add", installed.name)
    git(installed.parent, "commit", "-q", "-m", "second")
    commit = checkout_commit()
    assert len(commit) == 12 and git(installed.parent, "rev-parse", "HEAD").startswith(commit)


def test_a_repository_that_kgen_only_lies_in_is_not_its_own(installed: Path) -> None:
    assert checkout_commit() == ""


def test_without_a_repository_or_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "provenance.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.delenv("KGEN_COMMIT", raising=False)
    assert checkout_commit() == ""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert checkout_commit() == ""
