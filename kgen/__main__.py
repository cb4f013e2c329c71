"""`python -m kgen` is the `kgen` command."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the current folder: a random.py there is not Python's

from kgen.cli import main

main()
