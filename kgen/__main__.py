"""`python -m kgen` is the `kgen` command."""

from kgen.cli import main

main()
