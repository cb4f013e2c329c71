"""What the commands share: printing tables and JSON, and the options that spell a variant."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgen.cli.complete import complete_type, complete_variant
from kgen.errors import UsageError
from kgen.text import names_a_file

if TYPE_CHECKING:
    from rich.console import Console

# A table in fewer columns than these is not one; the terminal breaks its lines.
LEAST_WIDTH = 60
# Lines that go to a file or to another program are not broken.
NO_LIMIT = 100_000

Variant = Annotated[
    str, typer.Argument(help="A variant, or a .cu file.", autocompletion=complete_variant)
]
Variants = Annotated[
    list[str] | None,
    typer.Argument(help="Variants or .cu files.", autocompletion=complete_variant),
]
OnlyVariants = Annotated[
    str | None,
    typer.Option(
        "--variant", help="Only such variants: 'v7*' or v7.", autocompletion=complete_variant
    ),
]
Items = Annotated[
    str | None, typer.Option("--items", help="Set the axis items (items_per_thread).")
]
Vec = Annotated[
    int | None, typer.Option("--vec", help="Set the axis vec (vec_size): 1, 2, 4 or 8.")
]
Threads = Annotated[int | None, typer.Option("--threads", help="Set the axis threads.")]
Dtype = Annotated[
    str | None,
    typer.Option(
        "--dtype",
        help="The type of the input: float32, float16, bfloat16 or float64.",
        autocompletion=complete_type,
    ),
]
OutDtype = Annotated[
    str | None,
    typer.Option(
        "--out-dtype",
        help="The type of the output; the input's by default.",
        autocompletion=complete_type,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
On = Annotated[str, typer.Option("--on", help="Where kernels run: cpu or gpu.")]

# Eleven days; the system's clocks take no more than 24.
MAX_SECONDS = 1_000_000


def time_option(least: float, help: str) -> Any:
    """Return an option for a number of seconds, from `least` to MAX_SECONDS.

    What is none (inf and nan are floats to Typer) is refused with a UsageError.
    """

    def checked(param: typer.CallbackParam, value: float | None) -> float | None:
        if value is None or least <= value <= MAX_SECONDS:
            return value
        raise UsageError(f"{param.opts[0]} {value:g}: give {least:g} to {MAX_SECONDS} seconds")

    return typer.Option(help=help, callback=checked)


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


def type_words(dtype: str, out_dtype: str) -> str:
    """Return the types of input and output in a table: `bfloat16 to float32`, '' for float32."""
    words = " to ".join(dict.fromkeys((dtype, out_dtype)))
    return "" if words == "float32" else words


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

    if title:
        print_text(title, "italic")
    cells = list(rows)
    filled = [any(row[i] not in ("", None) for row in cells) for i in range(len(columns))]
    table = Table(box=None, header_style="bold", show_header=any(columns))
    for column in itertools.compress(columns, filled if cells else [True] * len(columns)):
        right = column.endswith(">")
        table.add_column(column.rstrip(">"), justify="right" if right else "left", overflow="fold")
    for row in cells:
        shown = ("" if cell is None else cell for cell in itertools.compress(row, filled))
        table.add_row(*(Text.from_ansi(str(cell)) for cell in shown))
    console().print(table)


def print_records(title: str, records: Iterable[dict[str, Any]]) -> None:
    """Print a table of one record or more, cells by their columns, as `print_table` does."""
    rows = list(records)
    print_table(title, list(rows[0]), [list(row.values()) for row in rows])


def print_text(text: str, style: str = "") -> None:
    """Print words, broken at blanks on a terminal and left whole elsewhere."""
    from rich.text import Text

    console().print(Text(text, style=style))


def print_code(lines: Iterable[tuple[str, str]]) -> None:
    """Print lines, each in a style, as they are: whole, and with their tabs, which Rich expands."""
    from rich.style import Style

    screen = console()
    is_coloured = screen.color_system and not screen.no_color
    for line, style in lines:
        print(Style.parse(style).render(line) if is_coloured else line)


def console() -> Console:
    """Return what prints on standard output: as wide as the terminal, as wide as can be elsewhere.

    Colours are the terminal's choice, and those of NO_COLOR and FORCE_COLOR.
    """
    from rich.console import Console

    made = Console(highlight=False)
    made.width = max(made.width, LEAST_WIDTH) if _on_terminal() else NO_LIMIT
    return made


def _on_terminal() -> bool:
    return sys.stdout.isatty()
