"""Commands that hand a source on: sass and export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kgen.cli.console import Items, Threads, Variant, Vec, with_options


def sass(
    variant: Variant,
    items: Items = None,
    vec: Vec = None,
    threads: Threads = None,
    cols: Annotated[int | None, typer.Option(help="Row length that items=auto covers.")] = None,
    arch: Annotated[str, typer.Option(help="The architecture.")] = "sm_90",
) -> None:
    """Print the machine code of a variant (or of an edited .cu)."""
    from kgen.cli.targets import find_target
    from kgen.execute import source_for
    from kgen.sources.render import render
    from kgen.sources.source import Source
    from kgen.toolchain import compile_cubin
    from kgen.toolchain import sass as machine_code

    target = find_target(with_options(variant, items, vec, threads))
    if not isinstance(target, Source):
        target = render(target) if cols is None else source_for(target, 1, cols)
    print(machine_code(compile_cubin(target, arch)))


def export(
    variant: Variant,
    items: Items = None,
    vec: Vec = None,
    threads: Threads = None,
    cols: Annotated[int | None, typer.Option(help="Row length that items=auto covers.")] = None,
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("exported"),
) -> None:
    """Write a source and a PyCUDA script that compiles, verifies and times it without kgen."""
    from kgen.cli.targets import find_target
    from kgen.execute import source_for
    from kgen.outputs.export import export as export_source
    from kgen.sources.render import render
    from kgen.sources.source import Source

    target = find_target(with_options(variant, items, vec, threads))
    if isinstance(target, Source):
        source = target
    else:
        source = render(target) if cols is None else source_for(target, 1, cols)
    for path in export_source(source, out):
        print(f"wrote {path}")
