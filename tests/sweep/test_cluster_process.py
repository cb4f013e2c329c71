"""A task in a process of its own: its result, its failures, and its end."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kgen.errors import MachineTrouble, UsageError
from kgen.sweep.cluster.process import TaskLost, run_task, stop_tasks
from tests.sweep.fake_gpus import is_gone

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Act:
    """A task that does what its name says; `file` gets the ids of its process and a child's."""

    name: str
    file: Path | None = None

    def __call__(self) -> Any:
        match self.name:
            case "print":
                print("on stdout")
                subprocess.run(["echo", "on a child's stdout"], check=True)
                os.write(1, b"on the descriptor")
            case "refuse":
                raise UsageError("not this one")
            case "take too much":
                raise MemoryError("no 3 TiB")
            case "stumble":
                raise ZeroDivisionError("by nothing")
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hang":
                child = subprocess.Popen(["sleep", "600"])
                assert self.file
                self.file.with_suffix(".new").write_text(f"{os.getpid()} {child.pid}")
                self.file.with_suffix(".new").rename(self.file)
                child.wait()
        return self.name, os.getpid()


def result(task: Act) -> Any:
    return pickle.loads(run_task(pickle.dumps(task), "a run"))


def processes(file: Path) -> list[int]:
    deadline = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < deadline, "the task did not start"
        time.sleep(0.02)
    return [int(word) for word in file.read_text().split()]


def test_the_result_comes_from_another_process_whatever_is_printed() -> None:
    name, process = result(Act("print"))
    assert name == "print" and process != os.getpid()


def test_an_error_of_kgen_is_a_result() -> None:
    error = result(Act("refuse"))
    assert isinstance(error, UsageError) and str(error) == "not this one"


def test_what_the_machine_lacks_is_a_result() -> None:
    error = result(Act("take too much"))
    assert isinstance(error, MachineTrouble) and str(error).startswith("no 3 TiB: free memory")


def test_what_ended_a_lost_task_is_told() -> None:
    with pytest.raises(TaskLost, match="exit code 1: ZeroDivisionError: by nothing"):
        result(Act("stumble"))
    with pytest.raises(TaskLost, match="died of SIGKILL"):
        result(Act("die"))


def test_a_task_that_cannot_be_read_is_lost() -> None:
    with pytest.raises(TaskLost, match=r"exit code 1: .*UnpicklingError"):
        run_task(b"no pickle" * 100_000, "a run")


def test_tasks_of_a_run_can_be_stopped(tmp_path: Path) -> None:
    losses: list[TaskLost] = []

    def wait() -> None:
        try:
            result(Act("hang", tmp_path / "ids"))
        except TaskLost as lost:
            losses.append(lost)

    thread = threading.Thread(target=wait)
    thread.start()
    found = processes(tmp_path / "ids")
    stop_tasks("another run")
    assert thread.is_alive()
    stop_tasks("a run")
    thread.join(10)
    assert len(losses) == 1 and all(map(is_gone, found))


def test_a_task_ends_with_its_worker(tmp_path: Path) -> None:
    script = (
        "import pathlib, pickle, sys; from tests.sweep.test_cluster_process import Act;"
        "from kgen.sweep.cluster.process import run_task;"
        "run_task(pickle.dumps(Act('hang', pathlib.Path(sys.argv[1]))), 'a run')"
    )
    worker = subprocess.Popen([sys.executable, "-c", script, tmp_path / "ids"])
    found = processes(tmp_path / "ids")
    worker.kill()
    worker.wait()
    assert all(map(is_gone, found))
