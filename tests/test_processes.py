"""Started programs end with kgen, however it ends, and import nothing from the user's folder."""

from __future__ import annotations

import errno
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import kgen
from kgen import processes
from kgen.errors import MachineTrouble
from kgen.processes import end, python, run, running, start, thread_pool
from kgen.reaper import marked

from .processes import HANGING, LIMIT_S, are_gone, await_file, traced

pytestmark = pytest.mark.slow

# Starts a program in a thread that ends before the program does.
OWNER = f"""
import signal, threading, time
signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # which a shell ignores for what it starts with &
from kgen.processes import start
thread = threading.Thread(target=lambda: start(["sh", "-c", {HANGING!r}]))
thread.start(); thread.join(); time.sleep(600)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGQUIT])
def test_programs_end_with_who_started_them(how: signal.Signals, tmp_path: Path) -> None:
    mark, environment = traced()
    owner = subprocess.Popen([*python("os")[:-1], OWNER], cwd=tmp_path, env=environment)
    await_file(tmp_path / "started")
    time.sleep(0.1)  # longer than the thread was there
    assert len(marked(mark)) >= 4
    owner.send_signal(how)
    owner.wait(LIMIT_S)
    assert are_gone(mark)


def test_the_reaper_ends_with_a_process_that_ends_by_itself(tmp_path: Path) -> None:
    mark, environment = traced()
    code = "from kgen.processes import run; run(['true'])"
    subprocess.run([*python("os")[:-1], code], cwd=tmp_path, env=environment, check=True)
    assert are_gone(mark)


@pytest.mark.parametrize("script", ["trap '' TERM; {0}; sleep 600", "(trap '' TERM; {0})& {0}"])
def test_an_error_ends_a_program_and_its_children(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "GRACE_S", 0.1)
    mark, environment = traced()
    command = ["sh", "-c", script.format("sleep 600 & echo > started; wait")]
    with pytest.raises(ZeroDivisionError), running(command, env=environment, cwd=tmp_path):
        await_file(tmp_path / "started")
        raise ZeroDivisionError
    assert are_gone(mark)


def test_a_time_limit_ends_a_program(tmp_path: Path) -> None:
    mark, environment = traced()
    with pytest.raises(subprocess.TimeoutExpired):
        run(["sh", "-c", "sleep 600; true"], timeout_s=0.2, env=environment)
    assert are_gone(mark)


def test_an_exception_ends_what_a_pool_runs_and_starts_no_more(tmp_path: Path) -> None:
    mark, environment = traced()
    begun = time.monotonic()

    def work(number: int) -> None:
        run(["sh", "-c", f"echo > {number}; exec sleep 600"], env=environment, cwd=tmp_path)
        run(["sh", "-c", "echo > second"], cwd=tmp_path)

    with pytest.raises(KeyboardInterrupt), thread_pool(2) as pool:
        for number in range(9):
            pool.submit(work, number)
        await_file(tmp_path / "1")
        raise KeyboardInterrupt
    assert time.monotonic() < begun + 20 and are_gone(mark)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0", "1"]
    assert run(["echo", "others go on"]).stdout == "others go on\n"


@contextmanager
def files_of_at_most(number: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_too_few_files_for_a_program() -> None:
    end(start(["true"]))  # with the reaper
    with (
        files_of_at_most(3),
        pytest.raises(MachineTrouble, match=r"true cannot be started: .*ulimit -n"),
    ):
        run(["true"])


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EAGAIN, "busy"), r"sh cannot be started: busy: end .*ulimit -u"),
        (OSError(errno.ENOMEM, "none"), r"sh cannot be started: none: free memory"),
        (MemoryError(), r"sh cannot be started: out of memory: free memory"),
    ],
)
def test_what_a_process_takes(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*command: object, **how: object) -> None:
        raise error

    end(start(["true"]))
    monkeypatch.setattr(processes, "Popen", refuse)
    with pytest.raises(MachineTrouble, match=words):
        run(["sh"])


def test_what_is_no_program_is_another_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run([tmp_path / "absent"])


def test_an_interpreter_imports_what_this_one_does_and_nothing_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.py").write_text("import sys, random\ndef main(): print(*sys.argv[1:])\n")
    (tmp_path / "random.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.setattr(sys, "path", ["", *sys.path, str(elsewhere)])
    assert run(python("mine", 1, "b"), cwd=tmp_path).stdout == "1 b\n"


def test_kgen_as_a_module_imports_nothing_of_the_folder(tmp_path: Path) -> None:
    for name in ("typer", "json", "platformdirs"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    ran = run([sys.executable, "-m", "kgen", "list", "--json"], cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_all_processes_are_started_in_one_place() -> None:
    starts = re.compile(
        r"subprocess\.(run|Popen|call|check_\w+)\(|\bPopen\(|os\.(fork|spawn|system)"
    )
    starts_workers = re.compile(r"get_context|ProcessPoolExecutor|multiprocessing import .*Process")
    folder = Path(kgen.__file__).parent
    found = {
        str(file.relative_to(folder))
        for file in folder.rglob("*.py")
        for text in [file.read_text()]
        if starts.search(text) or starts_workers.search(text)
    }
    assert found == {"processes.py"}


def test_an_own_process_is_no_part_of_it() -> None:
    """The user's environment, and what it starts, are left alone."""
    end(start(["true"]))
    assert not any(name.startswith("KGEN_STARTED_BY") for name in os.environ)
    assert threading.active_count() < 20
