"""The end by a signal: like that by an exception, so that everything is cleaned up."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

# As shells count an end by a signal.
ENDED_BY = 128
# Python runs handlers in its main thread, when that wakes up; a signal that comes just before the
# thread waits for another one does not wake it. So a signal for nothing else does, for a while.
_WAKE = signal.SIGURG
_PAUSE_S, _TIMES = 0.05, 20


@contextmanager
def ending_by_signals() -> Iterator[None]:
    """Have SIGTERM and SIGHUP raise SystemExit in the block, and Ctrl-C what it does, at once.

    A signal that the caller has ignored, as nohup does, stays so.
    """
    ends = (signal.SIGTERM, signal.SIGHUP)
    ours = [number for number in ends if signal.getsignal(number) is signal.SIG_DFL]
    handlers = {_WAKE: lambda number, frame: None, **dict.fromkeys(ours, _end)}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    heard, told = os.pipe()
    os.set_blocking(told, False)
    told_before = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    threading.Thread(target=_wake_main_thread, args=(heard,), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(told_before)
        os.close(told)
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: object) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)  # a second one ends at once
    sys.exit(ENDED_BY + number)


def _wake_main_thread(heard: int) -> None:
    """Wake the main thread behind each signal, until the other end of the pipe is closed."""
    with open(heard, "rb", buffering=0) as signals:
        while number := signals.read(1):
            for _ in range(_TIMES if number[0] != _WAKE else 0):
                time.sleep(_PAUSE_S)
                signal.pthread_kill(threading.main_thread().ident or 0, _WAKE)
