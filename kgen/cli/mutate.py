"""The command that makes mistakes: mutate."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgen.cli.console import Json, print_json, print_table
from kgen.errors import UsageError
from kgen.text import names_a_file

if TYPE_CHECKING:
    from kgen.evidence.mutation.campaign import Fate


def mutate(
    variants: Annotated[list[str] | None, typer.Argument(help="Variants; all named ones.")] = None,
    json: Json = False,
) -> None:
    """Make the mistakes that people make in a variant's source, and see what catches each."""
    from kgen.cli.targets import overlay
    from kgen.evidence.mutation.campaign import campaign
    from kgen.specs.variants import checked
    from kgen.specs.versions import VERSIONS

    if files := [name for name in variants or () if names_a_file(name)]:
        raise UsageError(f"{files[0]} is a file; mutants are made of what the templates give")
    fates = list(campaign(checked(variant, overlay()) for variant in variants or VERSIONS))
    if json:
        print_json(as_json(fates))
    else:
        _print_fates(fates)


def as_json(fates: list[Fate]) -> dict[str, Any]:
    """Return the numbers of mutants, caught, equivalent and surviving, and each one's fate."""
    return {
        "mutants": len(fates),
        "caught": sum(bool(fate.caught_by) for fate in fates),
        "equivalent": sum(bool(fate.equivalent) for fate in fates),
        "survivors": sum(fate.survives for fate in fates),
        "fates": [
            {
                "variant": fate.variant,
                "mutant": fate.mutant.key,
                "line": fate.mutant.line,
                "caught_by": fate.caught_by,
                "reason": fate.reason,
                "equivalent": fate.equivalent,
            }
            for fate in fates
        ],
    }


def _print_fates(fates: list[Fate]) -> None:
    kinds = ("compiler", "fault", "result", "memory", "race")
    rows = []
    for variant in dict.fromkeys(fate.variant for fate in fates):
        own = [fate for fate in fates if fate.variant == variant]
        caught = Counter(fate.caught_by for fate in own)
        equivalent = sum(bool(fate.equivalent) for fate in own)
        survivors = sum(fate.survives for fate in own)
        rows.append((variant, len(own), *(caught[kind] for kind in kinds), equivalent, survivors))
    columns = ("variant", "mutants>", *(f"by {kind}>" for kind in kinds), "equivalent>", "survive>")
    print_table("", columns, rows)
    for fate in fates:
        if fate.survives:
            print(f"{fate.variant}, line {fate.mutant.line}: {fate.mutant.key}: nothing catches it")
