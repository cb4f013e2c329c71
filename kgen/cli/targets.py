"""What commands are asked to work on: variants and files, with the templates of `--templates`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from kgen.execute import Target
    from kgen.overlay import Overlay


def used_overlay() -> Overlay:
    """Return the templates of this command line."""
    from kgen.overlay import OURS, Overlay

    context = click.get_current_context(silent=True)
    found = context.find_root().obj if context else None
    return found if isinstance(found, Overlay) else OURS


def find_target(text: str) -> Target:
    """Return what a user named, as `kgen.execute.find_target` does, of these templates."""
    from kgen.execute import find_target as find

    return find(text, used_overlay())
