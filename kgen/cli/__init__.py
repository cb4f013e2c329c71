"""The command line: parses, calls, prints. Everything it does is a call that Python can make."""

from __future__ import annotations

import io
import mmap
import os
import re
import sys
from signal import SIGINT
from typing import NoReturn

from kgen.cli.signals import ENDED_BY, ending_by_signals

INTERRUPTED = ENDED_BY + SIGINT
# Of address space, for libraries alone: NumPy's OpenBLAS ends the process where it gets too little.
LEAST_BYTES = 100 << 20


def main() -> None:
    """Run the command line; a user's mistake ends in one sentence and an exit code."""
    try:
        _main()
    except KeyboardInterrupt:  # outside of the commands, where Typer does the same
        sys.exit(INTERRUPTED)


def _main() -> None:
    _open_streams()
    _forget_silly_widths()
    # Its buffers for each core are half of the memory that kgen takes, and nothing uses them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from kgen.cli.app import app
    from kgen.errors import KgenError, MissingTool
    from kgen.machine_trouble import trouble_of

    try:
        try:
            mmap.mmap(-1, LEAST_BYTES).close()
            with ending_by_signals():
                app(prog_name="kgen")  # however it was called, for completion too
        finally:
            sys.stdout.flush()  # while a failure to write can still be told
    except KgenError as error:
        _fail(error, error.exit_code)
    except (MemoryError, OSError, RuntimeError) as error:
        lack = trouble_of(error)
        if isinstance(error, RuntimeError) and not lack:
            raise
        # What is still buffered has nowhere to go, and Python would try again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader has gone; Typer ends so, too
            sys.exit(1)
        _fail(lack or error, MissingTool.exit_code)


def _open_streams() -> None:
    """Have streams that take every character, also where they are closed or plain ASCII."""
    # A file that got the number of a closed one would be lost to the processes that are started.
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.StringIO())
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _forget_silly_widths() -> None:
    """Have a width of the terminal only if it is usable: what prints hangs or fails with others."""
    for name in ("COLUMNS", "LINES", "TERMINAL_WIDTH"):
        if not re.fullmatch("0*[1-9][0-9]{1,3}", os.environ.get(name, "80")):
            del os.environ[name]


def _fail(error: Exception | str, exit_code: int) -> NoReturn:
    print(f"kgen: {error}", file=sys.stderr)
    sys.exit(exit_code)
