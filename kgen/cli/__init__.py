"""The command line: parses, calls, prints. Everything it does is a call that Python can make."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line; a user's mistake ends in one sentence and an exit code."""
    from kgen.cli.app import app
    from kgen.errors import KgenError

    try:
        app()
    except KgenError as error:
        print(f"kgen: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone; nothing is left to tell it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
