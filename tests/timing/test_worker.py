import os
import signal
import time
from functools import partial

import pytest

from kgen.errors import MachineTrouble, UsageError
from kgen.timing.worker import Worker, WorkerLost

pytestmark = pytest.mark.slow

PATIENCE_S = 60


def act(item, base=0):
    match item:
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "be killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "take too much":
            raise MemoryError("no 3 TiB")
        case "exit":
            os._exit(7)
        case "hang":
            time.sleep(600)
        case "interrupt":
            os.kill(os.getppid(), signal.SIGINT)
            time.sleep(0.2)
            return None
        case "refuse":
            raise UsageError("not this one")
        case "stumble":
            raise ZeroDivisionError("by nothing")
    return base + item, os.getpid()


def act_on_numpy(item):
    import numpy

    return int(numpy.zeros(item).size)


@pytest.fixture
def worker():
    with Worker(partial(act, base=100)) as worker:
        yield worker


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_works_through_items_in_one_other_process(worker):
    (first, pid), (second, same_pid) = worker.apply(1, PATIENCE_S), worker.apply(2, PATIENCE_S)
    assert (first, second) == (101, 102)
    assert pid == same_pid != os.getpid()


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("be killed", r"the process it ran in could not finish \(SIGKILL\): free memory"),
        ("take too much", "no 3 TiB: free memory"),
    ],
)
def test_what_the_machine_lacks_is_no_loss_by_the_item(worker, item, words):
    with pytest.raises(MachineTrouble, match=words):
        worker.apply(item, PATIENCE_S)
    assert worker.apply(1, PATIENCE_S)[0] == 101


def test_nothing_of_the_current_folder_is_imported(tmp_path, monkeypatch):
    for name in ("random", "numpy", "socket"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path)
    with Worker(act_on_numpy) as worker:
        assert worker.apply(3, PATIENCE_S) == 3


def test_raises_the_errors_of_the_function_and_lives_on(worker):
    _, pid = worker.apply(1, PATIENCE_S)
    with pytest.raises(UsageError, match="not this one"):
        worker.apply("refuse", PATIENCE_S)
    with pytest.raises(WorkerLost, match="unexpected ZeroDivisionError: by nothing"):
        worker.apply("stumble", PATIENCE_S)
    assert not is_running(pid)


@pytest.mark.parametrize(
    "item, timeout_s, words",
    [
        ("crash", PATIENCE_S, "died of SIGSEGV"),
        ("exit", PATIENCE_S, "exit code 7"),
        ("hang", 0.2, "no result within 0.2 s"),
    ],
)
def test_is_replaced_when_it_is_lost(worker, item, timeout_s, words):
    _, pid = worker.apply(1, PATIENCE_S)
    with pytest.raises(WorkerLost, match=words):
        worker.apply(item, timeout_s)
    assert not is_running(pid)
    value, other_pid = worker.apply(1, PATIENCE_S)
    assert value == 101 and other_pid != pid


def test_stops_its_process_at_the_end():
    with Worker(act) as worker:
        _, pid = worker.apply(1, PATIENCE_S)
    assert not is_running(pid)
    worker.discard()


def test_ends_quietly_when_nobody_waits_for_its_result(capfd):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), Worker(act) as worker:
            worker.apply(1, PATIENCE_S)
            worker.apply("interrupt", PATIENCE_S)
    finally:
        signal.signal(signal.SIGINT, before)
    assert capfd.readouterr().err == ""
