"""The command that shows what was measured: results."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from kgen.cli.console import Dtype, Json, OnlyVariants, print_records, type_words
from kgen.errors import UsageError
from kgen.store.measurement import Kind, Measurement, Outcome

# Laying a table out takes milliseconds a row, and nobody reads thousands.
_MOST_IN_TABLE = 500


def results(
    db: Annotated[Path | None, typer.Option(help="The database; $KGEN_DB, or your own.")] = None,
    variant: OnlyVariants = None,
    rows: Annotated[int | None, typer.Option(help="Rows of the matrix.")] = None,
    cols: Annotated[int | None, typer.Option(help="Elements of a row.")] = None,
    dtype: Dtype = None,
    out_dtype: Annotated[str | None, typer.Option(help="The type of the output.")] = None,
    device: Annotated[str | None, typer.Option(help="A device, or a pattern: '*H200'.")] = None,
    outcome: Annotated[Outcome | None, typer.Option(help="How it ended.")] = None,
    pruned: Annotated[
        bool, typer.Option("--pruned", help="List what sweeps left out untimed, too.")
    ] = False,
    run: Annotated[str | None, typer.Option(help="A run, or: latest.")] = None,
    kind: Annotated[Kind | None, typer.Option(help="What was measured.")] = None,
    protocol: Annotated[str | None, typer.Option(help="The protocol's name.")] = None,
    l2: Annotated[str | None, typer.Option(help="The state of the L2 cache.")] = None,
    since: Annotated[datetime | None, typer.Option(help="Start of the first run, UTC.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many of the newest.")] = None,
    json: Json = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write to this .json or .csv.")] = None,
) -> None:
    """Show what was measured, newest last: a table, JSON or CSV of the database's rows.

    The table leaves out what sweeps pruned before it got a time; JSON and CSV have all rows.
    """
    from kgen.store.database import default_path

    form = _form(json, csv, out)
    path = db or default_path()
    filters: dict[str, Any] = {"rows": rows, "cols": cols, "device": device, "outcome": outcome}
    filters |= {"variant": variant and _canonical(variant), "run": run, "kind": kind}
    filters |= {"dtype": dtype, "out_dtype": out_dtype}
    most = limit or (_MOST_IN_TABLE if form == "table" else None)
    filters |= {"protocol_name": protocol, "l2": l2, "since": since, "limit": most}
    hides = form == "table" and not pruned and outcome is None
    found, hidden = _select(path, filters, hides) if db or path.exists() else ([], 0)
    if form != "table":
        _export(found, form, out)
    elif found:
        is_cut = limit is None and len(found) == most
        title = f"the newest {most}; --limit N shows N, --csv and --json all" if is_cut else ""
        print_records(title, map(_cells, found))
    elif hidden:
        print(f"{path} has no such measurements but pruned ones.")
    elif path.exists():
        print(f"{path} has no such measurements.")
    else:
        print(f"Nothing has been measured yet: there is no {path}.")
    if hidden:
        print(f"{hidden} pruned and not listed; --pruned lists them, too.")


def _form(json: bool, csv: bool, out: Path | None) -> str:
    """Return what to print or write: json or csv, by option or by the file's name, else table."""
    if json and csv:
        raise UsageError("--json and --csv exclude each other; give one of them")
    if json or csv:
        return "json" if json else "csv"
    if out and out.suffix not in (".json", ".csv"):
        raise UsageError(f"--out {out}: name a .json or .csv, or add --json or --csv")
    return out.suffix[1:] if out else "table"


def _canonical(variant: str) -> str:
    """Return a variant as it is spelt in the database, whatever the order of its axes."""
    from kgen.cli.targets import used_overlay
    from kgen.specs.variants import parse, spelling

    try:
        return spelling(parse(variant, used_overlay()))
    except UsageError:  # a pattern, a file, a peer
        return variant


def _select(path: Path, filters: dict[str, Any], hides: bool) -> tuple[list[Measurement], int]:
    """Return the rows that fit, and how many pruned ones beside them were hidden."""
    from kgen.store.database import open_store

    with open_store(path, read_only=True) as store:
        if not hides:
            return store.select(**filters), 0
        hidden = store.select(**{**filters, "outcome": Outcome.PRUNED, "limit": None})
        return store.select(**filters, without=Outcome.PRUNED), len(hidden)


def _export(measurements: Sequence[Measurement], form: str, out: Path | None) -> None:
    from kgen.files import write_atomically
    from kgen.store.export import csv_text, json_text

    text = csv_text(measurements) if form == "csv" else json_text(measurements)
    if not out:
        print(text, end="")
        return
    write_atomically(out, text)
    print(f"wrote {len(measurements)} measurements to {out}")


def _cells(row: Measurement) -> dict[str, str]:
    return {
        "variant": row.variant,
        "shape>": f"{row.rows} x {row.cols}",
        "type": type_words(row.dtype, row.out_dtype),
        "device": row.provenance.device,
        "protocol/l2": "/".join(filter(None, (row.protocol_name, row.l2))),
        "median us>": _number(row.median_us, 2),
        "model us>": _number(row.model_us, 2) if row.median_us is None else "",
        "spread %>": _number(_spread(row), 1),
        "GB/s>": _number(row.gb_per_s, 0),
        "% of copy>": _number(row.percent_of_copy, 0),
        "speed-up>": _number(row.speedup, 2) + (f" vs {row.baseline}" if row.baseline else ""),
        "outcome": _ending(row),
        "date (UTC)": row.provenance.measured_at[:16].replace("T", " "),
    }


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _spread(row: Measurement) -> float | None:
    """Return by how many percent the median may be off: half its interval over itself."""
    if row.low_us is None or row.high_us is None or not row.median_us:
        return None
    return 100 * (row.high_us - row.low_us) / 2 / row.median_us


def _ending(row: Measurement) -> str:
    """Return the outcome with the start of why: a compiler has much to say."""
    from textwrap import shorten

    why = shorten((row.reason or row.remark).partition("\n")[0], 60, placeholder=" ...")
    return f"{row.outcome}: {why}" if why else str(row.outcome)
