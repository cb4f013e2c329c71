"""Commands about files that kgen did not write: adopt, place, and the sweep of their constants."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import typer

from kgen.cli.console import Json, print_json, print_table, print_text
from kgen.errors import CheckFailed, UsageError

if TYPE_CHECKING:
    from kgen.adopted.guess import Guess
    from kgen.adopted.piece import Answers
    from kgen.adopted.syntax import CudaFile

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
    from kgen.adopted.piece import Answers
    from kgen.adopted.sidecar import sidecar_path, written
    from kgen.adopted.source import adopted_source, read_cuda
    from kgen.adopted.tried import settled
    from kgen.files import write_atomically

    target = sidecar_path(file)
    if file.suffix != ".cu":
        raise UsageError(f"{file}: kgen adopts files whose names end in .cu")
    if target.exists() and not force:
        raise UsageError(f"{target} is there already: edit it, or adopt with --force")
    parsed = read_cuda(file)
    said = dict(_pair(one) for one in argument or ())
    answers = Answers(tuple(kernel or ()), said, grid, block, shared)
    guessed = settled(file, _guessed(parsed, str(file), answers))
    adopted_source(file, guessed.sidecar)
    write_atomically(target, written(guessed.sidecar, guessed.remarks))
    if json:
        print_json({"sidecar": str(target), "remarks": guessed.remarks})
        return
    print(f"{file}: kernels {', '.join(one.path for one in parsed.kernels)}")
    print(f"wrote {target}:\n\n{target.read_text(encoding='utf-8').rstrip()}")


def _guessed(parsed: CudaFile, name: str, answers: Answers) -> Guess:
    """Return the guess of a file, after asking for what it cannot know. Raises UsageError."""
    from kgen.adopted.guess import SeveralKernels, guess

    try:
        found = guess(parsed, name, answers)
    except SeveralKernels as several:
        if not sys.stdin.isatty():
            raise
        listed = click.Choice(["+".join(names) for names in several.choices])
        chosen = tuple(typer.prompt("Which kernel?", type=listed).split("+"))
        return _guessed(parsed, name, replace(answers, kernels=chosen))
    if not found.questions:
        return found
    told = {**answers.arguments, **_asked(found, name)}
    again = guess(parsed, name, replace(answers, arguments=told))
    if again.questions:
        raise UsageError(f"{name}: {next(iter(again.questions.values()))}")
    return again


def _pair(text: str) -> tuple[str, str]:
    name, equals, role = text.partition("=")
    if not equals:
        raise UsageError(f"--argument {text}: write NAME=ROLE, such as n=cols")
    return name.strip(), role.strip()


def _asked(guessed: Guess, name: str) -> dict[str, str]:
    """Return what the user says to each question. Raises UsageError where nobody can be asked."""
    questions = {place.rpartition(".")[2]: said for place, said in guessed.questions.items()}
    if not sys.stdin.isatty():
        asked, question = next(iter(questions.items()))
        raise UsageError(f"{name}: {question} Say it with --argument {asked}=...")
    return {asked: typer.prompt(question) for asked, question in questions.items()}


def place(file: File, json: Json = False) -> None:
    """Say which named version an adopted file is nearest to, and what that does differently."""
    from kgen.adopted.place import place as find_place
    from kgen.cli.targets import find_target
    from kgen.sources.source import Source
    from kgen.specs.notes import notes

    source = find_target(str(file))
    if not isinstance(source, Source) or not source.contract:
        raise UsageError(f"{file} is no adopted file: kgen adopt {file}")
    found = find_place(source)
    if json:
        print_json({"file": str(file), **vars(found)})
        return
    rows, cols = found.shape
    print_text(f"{file} is nearest to {found.version}: {notes()[found.version].what}")
    print_text(f"then come {' and '.join(found.others)}")
    table = [(name, f"{own:.2f}", f"{theirs:.2f}") for name, own, theirs in found.differences]
    if table:
        title = f"what {found.version} does differently, on {rows} x {cols}"
        print_table(title, ("", f"{file}>", f"{found.version}>"), table)


def sweep_file(
    file: Path,
    settings: Sequence[str],
    rows: str | None,
    cols: str | None,
    protocol: str,
    l2: str | None,
    seconds: float | None,
    timeout: float,
    db: Path | None,
    on: str,
    json: bool,
) -> None:
    """Measure an adopted file with its constants set to every combination of some values."""
    from kgen.cli.bench import measured_rows, print_rows, require_undisturbed
    from kgen.cli.spaces import numbers
    from kgen.cli.targets import find_target
    from kgen.store.export import objects
    from kgen.timing.candidates import line_up
    from kgen.timing.protocol import find_protocol
    from kgen.timing.provenance import this_run

    targets = [find_target(name) for name in _variants(file, settings)]
    how, provenance = find_protocol(protocol, l2, budget_s=seconds), this_run(on)
    found = []
    shapes = itertools.product(numbers("rows", rows) or (1024,), numbers("cols", cols) or (4096,))
    for shape in shapes:
        candidates = line_up(targets, [], *shape)
        measured = measured_rows(candidates, how, provenance, on, None, timeout, db)
        ranked = sorted(measured, key=lambda row: row.median_us or math.inf)
        found += ranked
        if not json:
            print_rows(f"{shape[0]} x {shape[1]} on {provenance.device}", ranked)
    if json:
        print_json(objects(found))
    require_undisturbed(found)
    if found and all(row.outcome != "ok" for row in found):
        raise CheckFailed(f"none of the {len(found)} is right: {found[0].reason}")


def _variants(file: Path, settings: Sequence[str]) -> list[str]:
    """Return the file with every combination of its constants' values, as commands take it."""
    listed = []
    for setting in settings:
        name, equals, values = setting.partition("=")
        if not equals:
            raise UsageError(f"--constant {setting}: write NAME=VALUES, such as BLOCK=64,128")
        listed.append([f"{name.strip()}={value.strip()}" for value in values.split(",")])
    return [f"{file}:{','.join(chosen)}" if chosen else str(file) for chosen in
            itertools.product(*listed)]  # fmt: skip
