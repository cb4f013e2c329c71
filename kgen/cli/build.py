"""The command that writes sources and compiles them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgen.cli.complete import complete_variant
from kgen.cli.console import (
    Items,
    Json,
    Threads,
    Variants,
    Vec,
    print_json,
    print_records,
    with_options,
)
from kgen.errors import CheckFailed, KgenError, MissingTool, UsageError
from kgen.limits import DEFAULT_ARCH

if TYPE_CHECKING:
    from kgen.outputs.build import KernelReport
    from kgen.sources.source import Source
    from kgen.toolchain import CompileOptions

GENERATED = Path("generated")
Built = dict[Path, "Source"]  # by the file's path
# file and kernel -> architecture -> what it takes there
Reports = dict[tuple[Path, str], dict[str, "KernelReport"]]


def build(
    variants: Variants = None,
    more: Annotated[
        list[str] | None,
        typer.Option(
            "--variant",
            help="The same, as an option; repeatable.",
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
    arch: Annotated[
        str | None,
        typer.Option(help="Architectures, as in sm_75,sm_90,sm_120.", show_default=DEFAULT_ARCH),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to.", show_default=str(GENERATED))
    ] = None,
    maxrregcount: Annotated[int | None, typer.Option(help="Most registers a thread.")] = None,
    use_fast_math: Annotated[bool, typer.Option("--use_fast_math")] = False,
    lineinfo: Annotated[
        bool, typer.Option("--lineinfo", help="Line numbers for profilers.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files edited by hand.")] = False,
    json: Json = False,
) -> None:
    """Write the source of each variant, and compile it where there is an nvcc.

    An edited file is compiled where it is; with --out it is written there, too.
    """
    from kgen.toolchain import CompileOptions

    asked = [*(variants or ()), *(more or ())]
    axes = {"items": items, "vec": vec, "threads": threads, "cols": cols}
    flags: dict[str, Any] = {
        "maxrregcount": maxrregcount,
        "use_fast_math": use_fast_math,
        "lineinfo": lineinfo,
    }
    options, folder = CompileOptions(**flags), out or GENERATED
    if not all_versions and not asked:
        raise UsageError("name what to build: VARIANT or a .cu file, several of them, or --all")
    if all_versions:
        _refuse("--all builds the versions as they are named", asked, axes)
    if check and not all_versions:
        raise UsageError("--check compares generated files of all versions; use it with --all")
    if check:
        unused = {**flags, "arch": arch, "force": force, "json": json}
        _refuse("--check compares files and compiles none", (), unused)
        _check_drift(folder)
    elif all_versions:
        built = _write_all(folder, force)
        _finish(built, arch, options, json, None, f"wrote {len(built) + 1} files to {folder}")
    else:
        texts = [with_options(text, items, vec, threads) for text in asked]
        built = _write_named(texts, cols, out, force)
        _finish(built, arch, options, json, cols)


def _refuse(why: str, words: Sequence[str], options: dict[str, Any]) -> None:
    """Raise UsageError for what was given and would have no effect."""
    given = [
        f"--{name}" for name, value in options.items() if value is not None and value is not False
    ]
    if useless := [*words, *given]:
        raise UsageError(f"{why}; leave {', '.join(useless)} out")


def _check_drift(folder: Path) -> None:
    from kgen.outputs.build import drifted

    changed = drifted(folder)
    if changed:
        raise CheckFailed(
            f"{folder} is not what the templates give: {'; '.join(changed)}; "
            "run kgen build --all and look at the difference"
        )
    print(f"{folder} is what the templates give.")


def _write_named(texts: Sequence[str], cols: int | None, out: Path | None, force: bool) -> Built:
    """Write what was named, each once; an edited file stays where it is unless there is an `out`.

    Raises UsageError when two would be the same file, before anything is written.
    """
    from kgen.outputs.build import place, write

    built: Built = {}
    for source in [_source(text, cols) for text in texts]:
        stays = source.path if out is None else None
        path = stays or place(source, out or GENERATED)
        if built.setdefault(path, source) != source:
            raise UsageError(f"two of {', '.join(texts)} would be {path}; build them one by one")
    for path, source in built.items():
        if path != source.path:
            write(source, path.parent, force)
    return built


def _source(text: str, cols: int | None) -> Source:
    from kgen.cli.targets import find_target
    from kgen.execute import target_spec
    from kgen.sources.render import render
    from kgen.specs.rules import require_valid
    from kgen.specs.spec import Spec

    target = find_target(text)
    if cols is not None:
        require_valid(target_spec(target), 1, cols)
    if not isinstance(target, Spec):
        return target
    return render(target if cols is None else target.resolve(cols))


def _write_all(folder: Path, force: bool) -> Built:
    from kgen.outputs.build import named_sources, write_all

    return dict(zip(write_all(folder, force), named_sources().values(), strict=False))


def _finish(
    built: Built,
    arch: str | None,
    options: CompileOptions,
    json: bool,
    cols: int | None,
    summary: str = "",
) -> None:
    """Compile what was written and print what it takes; without an nvcc say so and go on."""
    from kgen.specs.spec import DEFAULT_COLS

    devices = {path: source for path, source in built.items() if not source.is_host}
    reports: Reports = {}
    if note := _hindrance(devices):
        note = f"not compiled: {note}"
    else:
        archs = [name.strip() for name in (DEFAULT_ARCH if arch is None else arch).split(",")]
        reports = _compile(devices, archs, options, cols or DEFAULT_COLS)
    if json:
        if note:
            print(note, file=sys.stderr)
        entries = [_as_json(source, path, reports) for path, source in built.items()]
        print_json(entries if len(entries) > 1 else entries[0])
        return
    said = [
        f"{'read' if path == source.path else 'wrote'} {path}" for path, source in built.items()
    ]
    print(summary or "\n".join(said))
    if note:
        print(note)
    else:
        _print_reports(reports)


def _hindrance(devices: Built) -> str:
    """Return why there is nothing to compile, or nothing to compile with."""
    from kgen.toolchain import find_nvcc

    if not devices:
        return "what runs on the host is not for nvcc"
    try:
        find_nvcc()
    except MissingTool as missing:
        return str(missing)
    return ""


def _compile(devices: Built, archs: list[str], options: CompileOptions, cols: int) -> Reports:
    """Return every kernel's reports by architecture. Raises CompileFailed with nvcc's words."""
    from kgen.outputs.build import kernel_reports
    from kgen.toolchain import compile_many

    reports: Reports = {}
    for arch in archs:
        binaries = compile_many(devices.values(), arch, options)
        for (path, source), binary in zip(devices.items(), binaries, strict=True):
            if isinstance(binary, KgenError):
                raise binary
            if binary.log:
                print(binary.log, file=sys.stderr)
            for row in kernel_reports(source, binary, cols):
                _note_broken_limit(row, arch, options)
                reports.setdefault((path, row.kernel), {})[arch] = row
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
            "architectures": {
                arch: asdict(row) for arch, row in reports.get((path, kernel), {}).items()
            },
        }
        for kernel in source.kernels
    ]
    return {"file": str(path), "kernels": kernels}


def _print_reports(reports: Reports) -> None:
    files_of = Counter(kernel for _, kernel in reports)
    print_records(
        "",
        (
            {
                "kernel": kernel if files_of[kernel] == 1 else f"{kernel} of {path}",
                "arch": arch,
                "registers>": row.registers,
                "stack>": row.stack_bytes,
                "spill stores>": row.spill_store_bytes,
                "spill loads>": row.spill_load_bytes,
                "static shared>": row.static_shared_bytes,
                "dynamic shared>": row.dynamic_shared_bytes,
                "occupancy>": f"{row.occupancy:.0%}",
                "limited by": ", ".join(row.limited_by),
            }
            for (path, kernel), archs in reports.items()
            for arch, row in archs.items()
        ),
    )
