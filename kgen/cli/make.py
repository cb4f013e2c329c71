"""Commands that hand a source on: sass and export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgen.cli.console import Items, Threads, Variant, Vec, with_options
from kgen.limits import DEFAULT_ARCH

if TYPE_CHECKING:
    from kgen.sources.source import Source


def sass(
    variant: Variant,
    items: Items = None,
    vec: Vec = None,
    threads: Threads = None,
    cols: Annotated[int | None, typer.Option(help="Row length that items=auto covers.")] = None,
    arch: Annotated[str, typer.Option(help="The architecture.")] = DEFAULT_ARCH,
) -> None:
    """Print the machine code of a variant (or of an edited .cu)."""
    from kgen.toolchain import compile_cubin
    from kgen.toolchain import sass as machine_code

    source = _source(with_options(variant, items, vec, threads), cols)
    print(machine_code(compile_cubin(source, arch)))


def export(
    variant: Variant,
    items: Items = None,
    vec: Vec = None,
    threads: Threads = None,
    cols: Annotated[int | None, typer.Option(help="Row length that items=auto covers.")] = None,
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("exported"),
) -> None:
    """Write a source and a PyCUDA script that compiles, verifies and times it without kgen."""
    from kgen.adopted.export import export_adopted
    from kgen.outputs.export import export as export_ours

    source = _source(with_options(variant, items, vec, threads), cols)
    for path in (export_adopted if source.contract else export_ours)(source, out):
        print(f"wrote {path}")


def _source(text: str, cols: int | None) -> Source:
    """Return the source of a file as it is, that of a variant for rows of `cols`."""
    from kgen.cli.targets import find_target
    from kgen.execute import source_for
    from kgen.sources.render import render
    from kgen.specs.spec import Spec

    target = find_target(text)
    if not isinstance(target, Spec):
        return target
    return render(target) if cols is None else source_for(target, 1, cols)
