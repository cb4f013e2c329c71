"""What the commands share: printing tables and JSON, and the options that spell a variant."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer

from kgen.errors import UsageError
from kgen.text import names_a_file

Items = Annotated[
    str | None, typer.Option("--items", help="Set the axis items (items_per_thread).")
]
Vec = Annotated[int | None, typer.Option("--vec", help="Set the axis vec (vec_size): 1, 2 or 4.")]
Threads = Annotated[int | None, typer.Option("--threads", help="Set the axis threads.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
On = Annotated[str, typer.Option("--on", help="Where kernels run: cpu or gpu.")]


def with_options(
    variant: str, items: str | None, vec: int | None = None, threads: int | None = None
) -> str:
    """Return the variant with the axes that were given as options added to its spelling."""
    options = {"items": items, "vec": vec, "threads": threads}
    settings = ",".join(f"{axis}={value}" for axis, value in options.items() if value is not None)
    if not settings:
        return variant
    if names_a_file(variant):
        raise UsageError(f"{variant} is a file, whose header fixes its axes; leave {settings} out")
    return f"{variant},{settings}" if ":" in variant else f"{variant}:{settings}"


def print_json(value: Any) -> None:
    """Print a value as JSON. Numbers that JSON lacks (NaN, infinities) are written as null."""
    json.dump(_plain(value), sys.stdout, indent=2)
    print()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return None
    return value


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table; a column whose name ends in `>` is set flush right.

    A column that has nothing in any of the rows is left out.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", box=None, header_style="bold")
    cells = list(rows)
    filled = [any(row[i] not in ("", None) for row in cells) for i in range(len(columns))]
    for column in itertools.compress(columns, filled if cells else [True] * len(columns)):
        right = column.endswith(">")
        table.add_column(column.rstrip(">"), justify="right" if right else "left", overflow="fold")
    for row in cells:
        shown = ("" if cell is None else cell for cell in itertools.compress(row, filled))
        table.add_row(*(Text.from_ansi(str(cell)) for cell in shown))
    print_rich(table)


def print_rich(thing: Any, stderr: bool = False) -> None:
    """Print with colours on a terminal and without them elsewhere, never cutting a line short."""
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console = Console(stderr=stderr, highlight=False, width=160, color_system=None)
    console.print(thing)
