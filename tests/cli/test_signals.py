"""Signals end a command, whichever thread the system hands them to, and the caller's handlers stay."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from kgen.cli.signals import ending_by_signals


def test_a_signal_that_another_thread_gets_is_heard() -> None:
    """As one is that comes just before the main thread waits."""
    never = threading.Event()

    def get_it() -> None:
        time.sleep(0.1)
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        never.wait(10)

    thread = threading.Thread(target=get_it)
    began = time.monotonic()
    with pytest.raises(SystemExit) as ended, ending_by_signals():
        thread.start()
        never.wait(10)
    never.set()
    thread.join()
    assert ended.value.code == 143 and time.monotonic() < began + 5


def test_handlers_are_as_before_afterwards() -> None:
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGURG)
    before = [signal.getsignal(number) for number in numbers]
    with ending_by_signals():
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert [signal.getsignal(number) for number in numbers] == before
    assert signal.set_wakeup_fd(-1) == -1
