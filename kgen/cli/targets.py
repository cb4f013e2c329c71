"""What commands are asked to work on: variants and files, with the templates of `--templates`."""

from __future__ import annotations

from collections.abc import Mapping
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


def find_typed(text: str, typed: Mapping[str, str | None]) -> Target:
    """Return what a user named, of the types that options give, unless the variant names its own.

    What rules refuse with these types is returned as well, to be told of. Raises UsageError as
    `find_target` does, and for types that no kernel has.
    """
    from kgen.specs.axes import parse_value
    from kgen.specs.types import find_types
    from kgen.specs.variants import apply, settings
    from kgen.text import names_a_file

    overlay = used_overlay()
    find_types(**typed, overlay=overlay)
    given = {axis: parse_value(axis, word, overlay) for axis, word in typed.items() if word}
    if not given or names_a_file(text):
        return find_target(text)
    base, named = settings(text, overlay)
    return apply(base, given | named)
