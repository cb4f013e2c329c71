"""The command that compares two sources, wherever they come from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgen.cli.complete import complete_variant
from kgen.cli.console import Json, print_code, print_json
from kgen.errors import UsageError
from kgen.specs.fields import format_value, short_name
from kgen.specs.spec import Spec

if TYPE_CHECKING:
    from kgen.sources.source import Source

Compared = Annotated[
    str | None,
    typer.Argument(
        help="A variant, a .cu file, or REVISION: and one of them.",
        autocompletion=complete_variant,
        show_default=False,
    ),
]


def diff(
    old: Compared = None,
    new: Compared = None,
    body: Annotated[bool, typer.Option("--body", help="Leave the files' headers out.")] = False,
    json: Json = False,
) -> None:
    """Show what differs between two variants or files: as axes, and as sources.

    REVISION:FILE and REVISION:VARIANT are what git has of a file and of the variant's in
    generated/; - is the standard input.
    """
    from kgen.sources.diff import compare, styled

    if not old or not new:
        given = f"there is only {old or new}" if old or new else "there are none"
        raise UsageError(f"diff compares two variants or files, and {given}: kgen diff v6 v7")
    before, after = _any_source(old), _any_source(new)
    difference = compare(before, after, body_only=body)
    if json:
        print_json({"fields": difference.fields, "diff": difference.text_diff})
        return
    for axis, (was, is_now) in difference.fields.items():
        print(f"{short_name(axis)}: {format_value(was)} -> {format_value(is_now)}")
    if not difference.fields and not (before.contract or after.contract):
        print("same axes")
    print()
    print_code(styled(difference.text_diff))


def _any_source(text: str) -> Source:
    from kgen.cli.targets import find_target, used_overlay
    from kgen.execute import read_file
    from kgen.sources.edited import read_source
    from kgen.sources.render import render
    from kgen.sources.revisions import source_at
    from kgen.specs.versions import VERSIONS
    from kgen.text import names_a_file

    path = Path("/dev/stdin" if text == "-" else text)
    if names_a_file(text) and path.exists():
        return read_file(text, used_overlay())
    if text == "-" or (path.name != text and path.exists()):  # a pipe has no suffix
        return read_source(path, used_overlay())
    revision, colon, name = text.partition(":")
    if colon and revision.strip() not in VERSIONS and not path.exists():
        return source_at(revision, name, used_overlay())
    target = find_target(text)
    return render(target) if isinstance(target, Spec) else target
