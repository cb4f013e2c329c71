"""The command that keeps the winners: tune."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgen.cli.console import Dtype, Json, OutDtype, print_json, print_records, type_words
from kgen.errors import MissingTool, UsageError

if TYPE_CHECKING:
    from kgen.specs.types import Types
    from kgen.sweep.tuned import Winner


def tune(
    db: Annotated[Path | None, typer.Option(help="The database; $KGEN_DB, or your own.")] = None,
    out: Annotated[Path, typer.Option(help="The table to add to, or to look up in.")] = Path(
        "tuned.json"
    ),
    lookup: Annotated[
        str | None, typer.Option(help="Print the variant for a shape: ROWSxCOLS.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Look up for this GPU; the one in use by default.")
    ] = None,
    dtype: Dtype = None,
    out_dtype: OutDtype = None,
    l2: Annotated[str, typer.Option(help="The state of the L2 cache: cold or warm.")] = "cold",
    json: Json = False,
) -> None:
    """Keep the fastest measured variant of every shape in a table, or look one up in it.

    Each type of input and output has winners of its own; one of float32 is looked up by default.
    """
    from kgen.cli.targets import used_overlay
    from kgen.specs.types import find_types

    if lookup is not None:
        _look_up(out, lookup, device, find_types(dtype, out_dtype, used_overlay()), json)
    elif dtype or out_dtype:
        raise UsageError("--dtype and --out-dtype are of a --lookup; winners of all are kept")
    else:
        _keep(db, out, l2, json)


def _keep(db: Path | None, out: Path, l2: str, json: bool) -> None:
    import msgspec

    from kgen.store.database import open_store
    from kgen.store.measurement import Kind, Outcome
    from kgen.sweep.tuned import AGAIN, merge, read_table, winners, write_table
    from kgen.timing.protocol import find_l2

    state = find_l2(l2)
    with open_store(db, read_only=True) as store:
        rows = store.select(kind=Kind.VARIANT, outcome=Outcome.OK, l2=state)
        place = store.path
    found = winners(rows)
    if not found:
        raise UsageError(f"{place} has no times of variants with a {l2} L2 cache; {AGAIN}")
    table = merge(read_table(out) if out.exists() else [], found)
    write_table(out, table)
    if json:
        print_json(msgspec.to_builtins(table))
    else:
        print_records("", map(_cells, table))
        print(f"wrote {len(table)} winners to {out}, {len(found)} of them from {place}")


def _look_up(path: Path, shape: str, device: str | None, types: Types, json: bool) -> None:
    import msgspec

    from kgen.cli.targets import used_overlay
    from kgen.sources.render import template_hash
    from kgen.sweep.tuned import find, read_table

    rows, cols = _shape(shape)
    table = read_table(path)
    templates = template_hash(used_overlay())
    winner = find(table, device or _gpu(), rows, cols, templates, types)
    if json:
        print_json(msgspec.to_builtins(winner))
        return
    print(winner.variant)
    evidence = f"{winner.median_us:.2f} us +- {winner.spread_percent:.1f}%, {winner.measured_at}"
    print(f"won at {winner.rows} x {winner.cols}: {evidence}", file=sys.stderr)


def _shape(text: str) -> tuple[int, int]:
    if not (found := re.fullmatch(r"\s*([0-9]{1,9})\s*x\s*([0-9]{1,9})\s*", text)):
        raise UsageError(f"--lookup {text}: write a shape as ROWSxCOLS, 1024x4096")
    return int(found[1]), int(found[2])


def _gpu() -> str:
    from kgen.gpu import device_info

    try:
        return device_info().name
    except MissingTool as missing:
        raise MissingTool(f"{missing}, or name a GPU with --device") from None


def _cells(winner: Winner) -> dict[str, str]:
    copy = winner.percent_of_copy
    return {
        "device": winner.device,
        "type": type_words(winner.dtype, winner.out_dtype),
        "shape>": f"{winner.rows} x {winner.cols}",
        "variant": winner.variant,
        "median us>": f"{winner.median_us:.2f}",
        "spread %>": f"{winner.spread_percent:.1f}",
        "% of copy>": "" if copy is None else f"{copy:.0f}",
        "tied>": str(len(winner.ties)),
        "of>": str(winner.candidates),
        "templates": winner.templates,
        "date (UTC)": winner.measured_at[:16].replace("T", " "),
    }
