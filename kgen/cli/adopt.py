"""Commands about files that kgen did not write: adopt."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgen.cli.console import Json, print_json
from kgen.errors import UsageError

if TYPE_CHECKING:
    from kgen.adopted.guess import Guess

File = Annotated[Path, typer.Argument(help="A .cu file.", show_default=False)]


def adopt(
    file: File,
    kernel: Annotated[
        list[str] | None,
        typer.Option(help="The kernel, or several in the order of their launches."),
    ] = None,
    argument: Annotated[
        list[str] | None, typer.Option(help="What an argument is: n=cols, tmp=input.")
    ] = None,
    grid: Annotated[str | None, typer.Option(help="Blocks: 'ceil_div(rows, 8)'.")] = None,
    block: Annotated[str | None, typer.Option(help="Threads of a block.")] = None,
    shared: Annotated[str | None, typer.Option(help="Dynamic shared bytes: '4 * block'.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a sidecar that is there.")
    ] = False,
    json: Json = False,
) -> None:
    """Read somebody's .cu and write beside it how it is launched; every command then takes it."""
    from kgen.adopted.guess import Answers, guess
    from kgen.adopted.sidecar import read_sidecar, sidecar_path, written
    from kgen.adopted.source import adopted_source, read_cuda
    from kgen.files import write_atomically

    target = sidecar_path(file)
    if target.exists() and not force:
        raise UsageError(f"{target} is there already: edit it, or adopt with --force")
    parsed = read_cuda(file)
    said = dict(_pair(one) for one in argument or ())
    guessed = guess(parsed, str(file), Answers(tuple(kernel or ()), said, grid, block, shared))
    if guessed.questions:
        said |= _asked(guessed, str(file))
        guessed = guess(parsed, str(file), Answers(tuple(kernel or ()), said, grid, block, shared))
    adopted_source(file, guessed.sidecar)
    write_atomically(target, written(guessed.sidecar, guessed.remarks))
    read_sidecar(target)
    if json:
        print_json({"sidecar": str(target), "remarks": guessed.remarks})
        return
    print(f"{file}: kernels {', '.join(one.path for one in parsed.kernels)}")
    print(f"wrote {target}:\n\n{target.read_text(encoding='utf-8').rstrip()}")


def _pair(text: str) -> tuple[str, str]:
    name, equals, role = text.partition("=")
    if not equals:
        raise UsageError(f"--argument {text}: write NAME=ROLE, such as n=cols")
    return name.strip(), role.strip()


def _asked(guessed: Guess, name: str) -> dict[str, str]:
    """Return what the user says to each question. Raises UsageError where nobody can be asked."""
    place, question = next(iter(guessed.questions.items()))
    if not sys.stdin.isatty():
        option = place.rpartition(".")[2]
        raise UsageError(f"{name}: {question} Say it with --argument {option}=ROLE")
    return {
        place.rpartition(".")[2]: typer.prompt(question) for place, question in
        guessed.questions.items()
    }  # fmt: skip
