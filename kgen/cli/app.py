"""The Typer application: one module a group of commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from kgen.cli import (
    adopt,
    bench,
    build,
    completion,
    diff,
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
from kgen.cli.examples import epilog

app = typer.Typer(
    name="kgen",
    help="Generates, proves and measures CUDA softmax kernels. A VARIANT is a version with axes "
    "set: v7:items=4,threads=512. kgen COMMAND -h has examples. "
    "Exit codes: 0 fine, 1 a check failed, 2 wrong usage, 3 this machine lacks something (a tool, "
    "memory, space), 130 ended by Ctrl-C, 143 by SIGTERM.",
    no_args_is_help=True,
    suggest_commands=False,  # click does
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS: dict[str, Callable[..., None]] = {
    "list": explore.list_versions,
    "show": explore.show,
    "explain": explore.explain_variant,
    "diff": diff.diff,
    "adopt": adopt.adopt,
    "place": adopt.place,
    "build": build.build,
    "sass": make.sass,
    "export": make.export,
    "run": prove.run,
    "check": prove.check,
    "count": observe.count,
    "profile": profile.profile,
    "mutate": mutate.mutate,
    "bench": bench.bench,
    "reproduce": reproduce.reproduce,
    "sweep": sweep.sweep,
    "results": results.results,
    "report": report.report,
    "tune": tune.tune,
    "doctor": explore.doctor,
    "completion": completion.completion,
}
for _name, _command in _COMMANDS.items():
    app.command(_name, epilog=epilog(_name))(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        from kgen.version import __version__

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
