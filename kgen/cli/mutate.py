"""The command that makes mistakes: mutate."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgen.cli.complete import complete_variant
from kgen.cli.console import Json, print_json, print_table
from kgen.errors import UsageError
from kgen.text import names_a_file

if TYPE_CHECKING:
    from kgen.evidence.mutation.campaign import Fate


def mutate(
    variants: Annotated[
        list[str] | None,
        typer.Argument(help="Variants; all named ones.", autocompletion=complete_variant),
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="Print numbers a variant, and what nothing catches.")
    ] = False,
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
    elif summary:
        _print_summary(fates)
    else:
        _print_mutants(fates)


def as_json(fates: list[Fate]) -> dict[str, Any]:
    """Return the numbers of mutants, caught, equivalent and surviving, and each one's fate."""
    return {
        "mutants": len(fates),
        "caught": _caught(fates),
        "equivalent": sum(bool(fate.equivalent) for fate in fates),
        "survivors": _surviving(fates),
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


def _print_mutants(fates: list[Fate]) -> None:
    rows = ((f.variant, f.mutant.line, f.mutant.mistake, f.mutant.change, _end(f)) for f in fates)
    print_table("", ("variant", "line>", "mistake", "change", "caught by"), rows)
    caught, survivors = _caught(fates), _surviving(fates)
    same = len(fates) - caught - survivors
    print(f"\n{len(fates)} mutants: {caught} caught, {same} do the same, {survivors} survive")


def _end(fate: Fate) -> str:
    if fate.equivalent:
        return f"nothing, and it does the same: {fate.equivalent}"
    return fate.caught_by or "nothing"


def _caught(fates: list[Fate]) -> int:
    return sum(bool(fate.caught_by) for fate in fates)


def _surviving(fates: list[Fate]) -> int:
    return sum(fate.survives for fate in fates)


def _print_summary(fates: list[Fate]) -> None:
    kinds = ("compiler", "fault", "result", "memory", "race")
    rows = []
    for variant in dict.fromkeys(fate.variant for fate in fates):
        own = [fate for fate in fates if fate.variant == variant]
        caught = Counter(fate.caught_by for fate in own)
        equivalent = sum(bool(fate.equivalent) for fate in own)
        ends = (*(caught[kind] for kind in kinds), equivalent, _surviving(own))
        rows.append((variant, len(own), *ends))
    columns = ("variant", "mutants>", *(f"by {kind}>" for kind in kinds), "equivalent>", "survive>")
    print_table("", columns, rows)
    for fate in fates:
        if fate.survives:
            print(f"{fate.variant}, line {fate.mutant.line}: {fate.mutant.key}: nothing catches it")
