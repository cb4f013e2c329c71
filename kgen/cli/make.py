"""Commands that write files: build and export."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgen.cli.complete import complete_variant
from kgen.cli.console import (
    Items,
    Json,
    Threads,
    Variant,
    Vec,
    print_json,
    print_table,
    with_options,
)
from kgen.errors import CheckFailed, KgenError, MissingTool, UsageError

if TYPE_CHECKING:
    from kgen.outputs.build import KernelReport
    from kgen.sources.source import Source
    from kgen.toolchain import CompileOptions

GENERATED = Path("generated")
# kernel -> architecture -> what it takes there
Reports = dict[str, dict[str, "KernelReport"]]


def build(
    variant: Annotated[
        str | None,
        typer.Option(
            "--variant",
            help="What to build: v7:items=4, or an edited .cu.",
            autocompletion=complete_variant,
        ),
    ] = None,
    all_versions: Annotated[bool, typer.Option("--all", help="Build every named version.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="With --all: write nothing, name drift.")
    ] = False,
    items: Items = None,
    vec: Vec = None,
    threads: Threads = None,
    cols: Annotated[int | None, typer.Option(help="Row length that items=auto covers.")] = None,
    arch: Annotated[str, typer.Option(help="Architectures, as in sm_75,sm_90,sm_120.")] = "sm_90",
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = GENERATED,
    maxrregcount: Annotated[int | None, typer.Option(help="Most registers a thread.")] = None,
    use_fast_math: Annotated[bool, typer.Option("--use_fast_math")] = False,
    lineinfo: Annotated[
        bool, typer.Option("--lineinfo", help="Line numbers for profilers.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files edited by hand.")] = False,
    json: Json = False,
) -> None:
    """Write the source of a variant, and compile it where there is an nvcc."""
    from kgen.toolchain import CompileOptions

    options = CompileOptions(
        maxrregcount=maxrregcount, use_fast_math=use_fast_math, lineinfo=lineinfo
    )
    if all_versions == (variant is not None):
        raise UsageError("name what to build: either --variant VARIANT or --all")
    if check and not all_versions:
        raise UsageError("--check compares generated files of all versions; use it with --all")
    if all_versions and any(value is not None for value in (items, vec, threads, cols)):
        raise UsageError("--all builds the versions as they are named; leave the axes out")
    if check:
        _check_drift(out)
    elif all_versions:
        _finish(*_write_all(out, force), arch, options, json, None)
    else:
        assert variant is not None
        source, path = _write_one(with_options(variant, items, vec, threads), cols, out, force)
        _finish([source], [path], arch, options, json, cols)


def _check_drift(folder: Path) -> None:
    from kgen.outputs.build import drifted

    changed = drifted(folder)
    if changed:
        raise CheckFailed(
            f"{folder} is not what the templates give: {'; '.join(changed)}; "
            "run kgen build --all and look at the difference"
        )
    print(f"{folder} is what the templates give.")


def _write_one(variant: str, cols: int | None, out: Path, force: bool) -> tuple[Source, Path]:
    """Return a variant's source and where it was written; an edited file stays where it is."""
    from kgen.cli.targets import find_target
    from kgen.outputs.build import write
    from kgen.sources.render import render
    from kgen.specs.rules import require_valid
    from kgen.specs.spec import Spec

    target = find_target(variant)
    if not isinstance(target, Spec):
        return target, Path(variant)
    if cols is not None:
        require_valid(target, 1, cols)
    source = render(target if cols is None else target.resolve(cols))
    return source, write(source, out, force)


def _write_all(out: Path, force: bool) -> tuple[list[Source], list[Path]]:
    from kgen.outputs.build import named_sources, write_all

    return list(named_sources().values()), write_all(out, force)


def _finish(
    sources: list[Source],
    paths: list[Path],
    arch: str,
    options: CompileOptions,
    json: bool,
    cols: int | None,
) -> None:
    """Compile what was written and print what it takes; without an nvcc say so and go on."""
    from kgen.specs.spec import DEFAULT_COLS
    from kgen.toolchain import find_nvcc

    rows, note = {}, ""
    try:
        find_nvcc()
    except MissingTool as missing:
        note = f"not compiled: {missing}"
    else:
        archs = [name.strip() for name in arch.split(",")]
        rows = _compile(sources, archs, options, cols or DEFAULT_COLS)
    if json:
        if note:
            print(note, file=sys.stderr)
        built = [_as_json(*pair, rows) for pair in zip(sources, paths, strict=False)]
        print_json(built if len(built) > 1 else built[0])
        return
    if len(paths) > 1:
        print(f"wrote {len(paths)} files to {paths[0].parent}")
    else:
        print(f"{'read' if sources[0].path else 'wrote'} {paths[0]}")
    if note:
        print(note)
    else:
        _print_reports(rows)


def _compile(
    sources: list[Source], archs: list[str], options: CompileOptions, cols: int
) -> Reports:
    """Return every kernel's reports by architecture. Raises CompileFailed with nvcc's words."""
    from kgen.outputs.build import report
    from kgen.toolchain import compile_many

    devices = [source for source in sources if not source.spec.is_host]
    reports: Reports = {}
    for arch in archs:
        for source, binary in zip(devices, compile_many(devices, arch, options), strict=True):
            if isinstance(binary, KgenError):
                raise binary
            if binary.log:
                print(binary.log, file=sys.stderr)
            for row in report(source, binary, cols):
                _note_broken_limit(row, arch, options)
                reports.setdefault(row.kernel, {})[arch] = row
    return reports


def _note_broken_limit(row: KernelReport, arch: str, options: CompileOptions) -> None:
    limit = options.maxrregcount
    if limit is not None and row.registers > limit:
        print(
            f"{row.kernel} takes {row.registers} registers on {arch} in spite of maxrregcount="
            f"{limit}: ptxas puts __launch_bounds__ first",
            file=sys.stderr,
        )


def _as_json(source: Source, path: Path, reports: Reports) -> dict[str, Any]:
    kernels = [
        {
            "kernel": kernel,
            "architectures": {arch: asdict(row) for arch, row in reports.get(kernel, {}).items()},
        }
        for kernel in source.kernels
    ]
    return {"file": str(path), "kernels": kernels}


def _print_reports(reports: Reports) -> None:
    print_table(
        "",
        (
            "kernel",
            "arch",
            "registers>",
            "stack>",
            "spill stores>",
            "spill loads>",
            "shared>",
            "occupancy>",
            "limited by",
        ),
        (
            (
                kernel,
                arch,
                row.registers,
                row.stack_bytes,
                row.spill_store_bytes,
                row.spill_load_bytes,
                row.static_shared_bytes,
                f"{row.occupancy:.0%}",
                ", ".join(row.limited_by),
            )
            for kernel, archs in reports.items()
            for arch, row in archs.items()
        ),
    )


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
