"""The Typer application: one module a group of commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kgen.cli import (
    bench,
    build,
    explore,
    make,
    mutate,
    observe,
    profile,
    prove,
    report,
    reproduce,
    results,
    sweep,
    tune,
)

app = typer.Typer(
    name="kgen",
    help="Generates, proves and measures CUDA softmax kernels. A VARIANT is a version with axes "
    "set: v7:items=4,threads=512. Exit codes: 0 fine, 1 a check failed, 2 wrong usage, 3 something "
    "is missing on this machine, 130 a sweep was ended by Ctrl-C.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("list")(explore.list_versions)
app.command("show")(explore.show)
app.command("explain")(explore.explain_variant)
app.command("diff")(explore.diff)
app.command("build")(build.build)
app.command("sass")(make.sass)
app.command("export")(make.export)
app.command("run")(prove.run)
app.command("check")(prove.check)
app.command("count")(observe.count)
app.command("profile")(profile.profile)
app.command("mutate")(mutate.mutate)
app.command("bench")(bench.bench)
app.command("reproduce")(reproduce.reproduce)
app.command("sweep")(sweep.sweep)
app.command("results")(results.results)
app.command("report")(report.report)
app.command("tune")(tune.tune)
app.command("doctor")(explore.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        from kgen import __version__

        print(f"kgen {__version__}")
        raise typer.Exit


@app.callback(help=app.info.help if isinstance(app.info.help, str) else None)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
    templates: Annotated[
        Path | None,
        typer.Option(
            "--templates",
            envvar="KGEN_TEMPLATES",
            metavar="DIR",
            help="A folder whose templates come before kgen's; its choices.toml adds choices.",
        ),
    ] = None,
) -> None:
    """Take the options that stand before a command."""
    if templates:
        from kgen.overlay import overlay
        from kgen.specs.declared import choices

        context.obj = overlay(templates)
        choices("op", context.obj)  # so that a mistake in them is told by every command
