"""The command that counts what kernels do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgen.cli.complete import complete_variant
from kgen.cli.console import Json, print_json, print_table
from kgen.errors import UsageError

if TYPE_CHECKING:
    from kgen.cpu.observation import Counts, Observation
    from kgen.execute import Target

# What the table shows, in its order, and how it calls it.
_ROWS = {
    "global loads": "global_loads",
    "global stores": "global_stores",
    "shared loads": "shared_loads",
    "shared stores": "shared_stores",
    "atomics": "atomics",
    "exponentials": "exponentials",
    "shuffles": "shuffles",
    "votes": "votes",
    "warp reductions": "warp_reductions",
    "__syncwarp": "warp_syncs",
    "__syncthreads": "barriers",
    "shared bank conflicts": "shared_bank_conflicts",
    "bytes loaded": "global_bytes_loaded",
    "bytes stored": "global_bytes_stored",
    "sectors loaded": "global_sectors_loaded",
    "sectors stored": "global_sectors_stored",
    "exponentials of threads": "thread_exponentials",
}
_BY_WIDTH = ("global_loads", "global_stores", "shared_loads", "shared_stores")


def count(
    variants: Annotated[
        list[str],
        typer.Argument(help="Variants or .cu files.", autocompletion=complete_variant),
    ],
    rows: Annotated[int, typer.Option(help="Rows of the matrix.")] = 1024,
    cols: Annotated[int, typer.Option(help="Elements of a row.")] = 4096,
    dist: Annotated[str, typer.Option(help="Distribution of the input.")] = "uniform",
    schedule: Annotated[str, typer.Option(help="Order of threads.")] = "in_order",
    json: Json = False,
) -> None:
    """Count warp instructions, by observing every access on the CPU; no GPU is needed."""
    from kgen.evidence.inputs import make
    from kgen.execute import observe, target_spec

    if rows < 1 or cols < 1:
        raise UsageError(f"{rows} x {cols} has no elements: give --rows and --cols of at least 1")
    targets = [_kernel(variant) for variant in variants]
    seen = [
        observe(target, make(dist, rows, cols, 42, target_spec(target).dtype), schedule=schedule)
        for target in targets
    ]
    if json:
        print_json(
            [_facts(name, rows, cols, one) for name, one in zip(variants, seen, strict=True)]
        )
        return
    totals = [one.total for one in seen]
    table = [(label, *(_cell(total, field) for total in totals)) for label, field in _ROWS.items()]
    print_table(f"{rows} x {cols}", ("warp instructions", *(f"{n}>" for n in variants)), table)


def _kernel(variant: str) -> Target:
    """Return what is named. Raises UsageError for what runs on the host."""
    from kgen.cli.targets import find_target
    from kgen.execute import require_kernel

    target = find_target(variant)
    require_kernel(target, "it has no warps to count, so name a version other than cpu")
    return target


def _facts(variant: str, rows: int, cols: int, seen: Observation) -> dict[str, Any]:
    total = seen.total.as_dict()
    sums = {name: value for name, value in total.items() if name != "kernel"}
    kernels = [launch.as_dict() for launch in seen.counts]
    return {"variant": variant, "rows": rows, "cols": cols, **sums, "kernels": kernels}


def _cell(total: Counts, field: str) -> str:
    from kgen.cpu.observation import WIDTHS

    text = f"{getattr(total, field):,}"
    if field not in _BY_WIDTH:
        return text
    by_width = zip(WIDTHS, getattr(total, f"{field}_by_width"), strict=True)
    used = [(width, number) for width, number in by_width if number]
    if len(used) > 1:
        text += f" ({', '.join(f'{width} B: {number:,}' for width, number in used)})"
    elif used and used[0][0] != 4:
        text += f" ({used[0][0]} B)"
    return text
