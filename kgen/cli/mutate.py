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
    from kgen.evidence.mutation.campaign import MutantResult


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
    from kgen.specs.versions import VERSIONS

    results = [result for name in variants or VERSIONS for result in _results(name)]
    if json:
        print_json(as_json(results))
    elif summary:
        _print_summary(results)
    else:
        _print_mutants(results)


def _results(name: str) -> list[MutantResult]:
    """Return what becomes of the mutants of a variant, or of an adopted file."""
    from kgen.adopted.mutation import campaign_on
    from kgen.cli.targets import find_target, used_overlay
    from kgen.evidence.mutation.campaign import campaign
    from kgen.sources.source import Source
    from kgen.specs.variants import checked

    if not names_a_file(name):
        return list(campaign([checked(name, used_overlay())]))
    target = find_target(name)
    if not isinstance(target, Source) or not target.contract:
        raise UsageError(
            f"{name} is a file that kgen generated; mutants are made of what the templates give, "
            "or of adopted files"
        )
    return list(campaign_on(target))


def as_json(results: list[MutantResult]) -> dict[str, Any]:
    """Return the numbers of mutants, caught, equivalent and surviving, and each one's result."""
    return {
        "mutants": len(results),
        "caught": _caught(results),
        "equivalent": sum(bool(result.equivalent) for result in results),
        "survivors": _surviving(results),
        "results": [
            {
                "variant": result.variant,
                "mutant": result.mutant.key,
                "line": result.mutant.line,
                "caught_by": result.caught_by,
                "reason": result.reason,
                "equivalent": result.equivalent,
            }
            for result in results
        ],
    }


def _print_mutants(results: list[MutantResult]) -> None:
    rows = ((f.variant, f.mutant.line, f.mutant.mistake, f.mutant.change, _end(f)) for f in results)
    print_table("", ("variant", "line>", "mistake", "change", "caught by"), rows)
    caught, survivors = _caught(results), _surviving(results)
    same = len(results) - caught - survivors
    print(f"\n{len(results)} mutants: {caught} caught, {same} do the same, {survivors} survive")


def _end(result: MutantResult) -> str:
    if result.equivalent:
        return f"nothing, and it does the same: {result.equivalent}"
    return result.caught_by or "nothing"


def _caught(results: list[MutantResult]) -> int:
    return sum(bool(result.caught_by) for result in results)


def _surviving(results: list[MutantResult]) -> int:
    return sum(result.survives for result in results)


def _print_summary(results: list[MutantResult]) -> None:
    kinds = ("compiler", "fault", "result", "memory", "race")
    rows = []
    for variant in dict.fromkeys(result.variant for result in results):
        own = [result for result in results if result.variant == variant]
        caught = Counter(result.caught_by for result in own)
        equivalent = sum(bool(result.equivalent) for result in own)
        ends = (*(caught[kind] for kind in kinds), equivalent, _surviving(own))
        rows.append((variant, len(own), *ends))
    columns = ("variant", "mutants>", *(f"by {kind}>" for kind in kinds), "equivalent>", "survive>")
    print_table("", columns, rows)
    for one in results:
        if one.survives:
            print(f"{one.variant}, line {one.mutant.line}: {one.mutant.key}: nothing catches it")
