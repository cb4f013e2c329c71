"""The command that says what was measured so far: report."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgen.cli.console import Json, OnlyVariants, print_json, type_words

if TYPE_CHECKING:
    from kgen.store.measurement import Measurement

# What rows must have in common for their times to be compared: device, toolchain, protocol, L2, and
# the types of input and output in words.
Place = tuple[str, str, str, str, str]


def report(
    db: Annotated[Path | None, typer.Option(help="The database; $KGEN_DB, or your own.")] = None,
    variant: OnlyVariants = None,
    rows: Annotated[int | None, typer.Option(help="Only this number of rows.")] = None,
    cols: Annotated[int | None, typer.Option(help="Only this row length.")] = None,
    device: Annotated[str | None, typer.Option(help="Only this device, or a pattern.")] = None,
    run: Annotated[str | None, typer.Option(help="Only this run, or: latest.")] = None,
    l2: Annotated[str | None, typer.Option(help="Only this state of the L2 cache.")] = None,
    json: Json = False,
) -> None:
    """Say what the database's newest rows mean, as a sweep does at its end; nothing is measured."""
    from kgen.cli.answer_tables import as_objects, print_answer
    from kgen.store.database import open_store
    from kgen.store.measurement import Kind
    from kgen.sweep.answer import answer

    with open_store(db, read_only=True) as store:
        found = store.select(rows=rows, cols=cols, device=device, run=run, l2=l2)
        if variant:
            wanted = {row.variant for row in store.select(variant=variant)}
            found = [row for row in found if row.variant in wanted or row.kind is Kind.COPY]
        path = store.path
    answers = [(place, answer(rows)) for place, rows in newest(found).items()]
    if json:
        print_json([{"place": list(place), **as_objects(each)} for place, each in answers])
        return
    for (where, toolchain, protocol, state, types), each in answers:
        of_types = "" if types == "float32" else f", {types}"
        print(f"{where}, {toolchain}, {protocol}{f', L2 {state}' if state else ''}{of_types}\n")
        print_answer(each)
        print()
    if not answers:
        print(f"{path} has no such measurements of variants.")


def newest(rows: Iterable[Measurement]) -> dict[Place, list[Measurement]]:
    """Return the newest row of every variant and copy on every shape, by what compares."""
    from kgen.store.measurement import Kind

    places: dict[Place, dict[tuple[str, int, int], Measurement]] = {}
    for row in rows:
        if row.kind not in (Kind.VARIANT, Kind.COPY):
            continue
        where = row.provenance
        types = type_words(row.dtype, row.out_dtype) or "float32"
        place = (where.device, where.toolchain, row.protocol_name, row.l2, types)
        places.setdefault(place, {})[row.variant, row.rows, row.cols] = row
    return {place: list(by_name.values()) for place, by_name in places.items()}
