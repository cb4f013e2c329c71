"""Commands that somebody ends, or that the machine hinders: nothing is left, and no verdict."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kgen
from kgen import cpu
from kgen.errors import MachineTrouble
from kgen.reaper import marked
from kgen.sources.source import Source
from kgen.store.database import open_store
from tests.cli.conftest import Ended
from tests.processes import HANGING, LIMIT_S, are_gone, await_file, traced

pytestmark = pytest.mark.slow

Call = Callable[..., Ended]
SMALL = ("--rows", 3, "--cols", 5)


@pytest.fixture
def make_cxx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Have kgen use a C++ compiler that does what a script says, and an empty cache."""

    def make(script: str) -> None:
        program = tmp_path / "c++"
        version = 'case "$1" in --version) echo GCC; exit ;; esac'
        program.write_text(f"#!/bin/sh\n{version}\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("CXX", str(program))
        monkeypatch.setenv("KGEN_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.setenv("KGEN_DB", str(tmp_path / "results.sqlite"))

    return make


def begin(
    folder: Path, *arguments: object, hangup: signal.Handlers = signal.SIG_DFL
) -> tuple[str, subprocess.Popen[str]]:
    def as_of_a_terminal() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # jobs in a shell's background ignore it
        signal.signal(signal.SIGHUP, hangup)

    mark, environment = traced()
    command = [sys.executable, "-P", "-m", "kgen", *map(str, arguments)]
    return mark, subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=as_of_a_terminal,
    )


def litter(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if path.is_dir()]


@pytest.mark.parametrize(
    ("how", "code"),
    [
        (signal.SIGTERM, 143),
        (signal.SIGHUP, 129),
        (signal.SIGINT, 130),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_an_end_while_a_compiler_runs(
    make_cxx: Callable[[str], None], tmp_path: Path, how: signal.Signals, code: int
) -> None:
    make_cxx(f"cd {tmp_path}; {HANGING}")
    mark, process = begin(tmp_path, "check", "v5", *SMALL)
    await_file(tmp_path / "started")
    process.send_signal(how)
    assert (process.communicate(timeout=LIMIT_S)[1], process.returncode) == ("", code)
    assert are_gone(mark)
    assert how == signal.SIGKILL or not litter(tmp_path)


@pytest.mark.usefixtures("cxx")
@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_an_end_while_a_kernel_runs(tmp_path: Path, how: signal.Signals, code: int) -> None:
    text = kgen.render("v5").text
    endless = text.replace("c = threadIdx.x; c < cols; c +=", "c = threadIdx.x; c < cols; c += 0 *")
    assert endless != text
    (tmp_path / "endless.cu").write_text(endless)
    mark, process = begin(tmp_path, "bench", "endless.cu", "--on", "cpu", *SMALL, "--db", "x")
    deadline = time.monotonic() + LIMIT_S
    while not any(map(runs_a_kernel, marked(mark))):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.send_signal(how)
    assert (process.communicate(timeout=LIMIT_S)[1], process.returncode) == ("", code)
    assert are_gone(mark)


def runs_a_kernel(process: int) -> bool:
    try:
        return "softmax_v5" in Path(f"/proc/{process}/exe").readlink().name
    except OSError:
        return False


def test_the_end_of_a_sweep_on_workers(make_cxx: Callable[[str], None], tmp_path: Path) -> None:
    make_cxx(f"cd {tmp_path}; {HANGING}")
    command = ("sweep", "--variants", "v5,v6", "--on", "cpu", "--local-workers", 1)
    mark, process = begin(tmp_path, *command, *SMALL)
    await_file(tmp_path / "started")
    process.kill()
    process.communicate(timeout=LIMIT_S)
    assert are_gone(mark)


def test_a_signal_that_the_user_ignores_is_ignored(
    make_cxx: Callable[[str], None], tmp_path: Path
) -> None:
    make_cxx(f"echo > {tmp_path}/started; sleep 0.5; echo rejected >&2; exit 1")
    _, process = begin(tmp_path, "run", "v5", hangup=signal.SIG_IGN)  # as nohup has it
    await_file(tmp_path / "started")
    process.send_signal(signal.SIGHUP)
    assert "rejected" in process.communicate(timeout=LIMIT_S)[1] and process.returncode == 1


@pytest.mark.parametrize(
    "command", ["run v5", "check v5", "count v5", "mutate v2", "bench v5 --on cpu"]
)
@pytest.mark.parametrize(
    "script", ["kill -KILL $$", "echo 'x.s: No space left on device' >&2; exit 1"]
)
def test_what_hinders_a_compiler_is_no_verdict(
    call: Call, make_cxx: Callable[[str], None], command: str, script: str
) -> None:
    make_cxx(script)
    ended = call(*command.split(), *(SMALL if "mutate" not in command else ()))
    assert ended.code == 3 and "c++ could not finish" in ended.err
    assert ended.err.startswith("kgen: ") and ended.err.count("\n") == 1
    assert "FAILED" not in ended.out


@pytest.mark.usefixtures("cxx")
@pytest.mark.parametrize("command", ["bench v5 v6 --on cpu", "sweep --variants v5,v6 --on cpu"])
def test_what_met_machine_trouble_is_tried_again(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    def lacking(source: Source, *arguments: Any, **options: Any) -> Any:
        if "v6" in source.stem:
            raise MachineTrouble("too little memory")
        return run(source, *arguments, **options)

    run = cpu.run
    monkeypatch.setenv("KGEN_DB", str(tmp_path / "results.sqlite"))
    monkeypatch.setattr(cpu, "run", lacking)
    ended = call(*command.split(), *SMALL)
    assert ended.code == 3 and stored(tmp_path) == ["v5"]
    assert ended.err.endswith(  # behind how far a sweep was
        "kgen: 1 of 2 met machine trouble and are tried again next time: v6 at 3 x 5: too little memory\n"
    )
    monkeypatch.setattr(cpu, "run", run)
    assert call(*command.split(), *SMALL).code == 0
    assert stored(tmp_path)[-1] == "v6"


def stored(folder: Path) -> list[str]:
    with open_store(folder / "results.sqlite") as store:
        return [row.variant for row in store.select()]
