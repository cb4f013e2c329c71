"""Commands are called as the command line's own tests call them."""

from tests.cli.conftest import call

__all__ = ["call"]
