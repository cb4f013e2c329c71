"""What Tab completes: versions, axes, their values and files, in bash as it breaks words."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import pytest
import typer

from kgen.cli.app import app
from kgen.cli.completion import _COMPLETES, Shell
from kgen.specs.fields import AXES, ROW_MAP, short_name
from kgen.specs.versions import VERSIONS
from tests.cli.conftest import Ended

pytestmark = pytest.mark.slow

Call = Callable[..., Ended]
BREAKS = " \t\n\"'><=;|&(:"
BUTTERFLY = Path(__file__).parents[2] / "examples/butterfly"
needs_bash = pytest.mark.skipif(not shutil.which("bash"), reason="this machine has no bash")


@pytest.fixture
def complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """The words that a shell offers for a line; without breaks of words, as zsh has it."""
    monkeypatch.chdir(tmp_path)
    root = typer.main.get_command(app)

    def words(line: str, breaks: str = "", shell: Shell = Shell.BASH) -> list[str]:
        monkeypatch.setenv("COMP_LINE", line)
        monkeypatch.setenv("COMP_WORDBREAKS", breaks)
        answer = _COMPLETES[shell](root, {}, "kgen", "_KGEN_COMPLETE").complete()
        return [word for word in answer.split("\n") if word]

    return words


# Every command that takes a variant, up to the place where it stands.
PLACES = (
    "show", "explain", "diff v5", "diff", "run", "check", "check v5", "count", "profile", "bench",
    "bench v5 --baseline", "build --variant", "sass", "export", "mutate", "sweep --variants",
    "results --variant", "report --variant",
)  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_variants_of_every_command(complete: Callable[..., list[str]], place: str) -> None:
    assert {word.strip() for word in complete(f"kgen {place} ")} >= set(VERSIONS)
    assert complete(f"kgen {place} v6_f") == ["v6_fetch "]
    assert complete(f"kgen {place} v7:ite") == ["v7:items="]
    assert complete(f"kgen {place} v8:exp=") == [f"v8:exp={e}" for e in ("expf", "__expf", "exp2")]
    assert complete(f"kgen {place} v8:exp=exp2,threads=51") == ["v8:exp=exp2,threads=512"]


def test_no_command_with_a_variant_was_forgotten() -> None:
    root = typer.main.get_command(app)
    assert isinstance(root, click.Group)
    takers = {
        name
        for name, command in root.commands.items()
        for parameter in command.params
        if parameter.name in ("variant", "variants", "old", "new", "baseline")
    }
    assert takers == {place.split()[0] for place in PLACES}


def test_axes_are_offered_once(complete: Callable[..., list[str]]) -> None:
    axes = [f"{short_name(axis)}=" for axis in (*AXES, ROW_MAP)]
    assert complete("kgen show v7:") == [f"v7:{axis}" for axis in axes]
    left = [axis for axis in axes if axis not in ("vec=", "items=")]
    start = "v7:vec=4,items_per_thread=2,"
    assert complete(f"kgen show {start}") == [start + axis for axis in left]
    assert complete("kgen show v7:vex=") == []


def test_axes_that_no_sweep_tries_have_their_values_too(complete: Callable[..., list[str]]) -> None:
    assert complete("kgen show v7:op=") == ["v7:op=softmax", "v7:op=log_softmax"]
    assert complete("kgen show v7:row_map=w") == ["v7:row_map=warp"]
    assert complete("kgen export v7:out_dtype=b") == ["v7:out_dtype=bfloat16"]
    assert complete("kgen sweep --dtype float1") == ["float16 "]
    assert complete("kgen bench v7 --out-dtype b") == ["bfloat16 "]


def test_lists_of_variants_and_of_values(complete: Callable[..., list[str]]) -> None:
    assert complete("kgen sweep --variants v5,v6_f") == ["v5,v6_fetch "]
    assert complete("kgen sweep --variants v5:exp=exp2,v6_f") == ["v5:exp=exp2,v6_fetch"]
    assert complete("kgen sweep --variants v5,v7:vec=4,tri") == ["v5,v7:vec=4,trip="]
    assert complete("kgen sweep --axis tri") == ["trip="]
    assert complete("kgen sweep --axis trip=static,r") == ["trip=static,runtime"]
    assert complete("kgen sweep --axis nothing=") == []


def test_files_and_folders(complete: Callable[..., list[str]], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    for name in ("mine/a.cu", "mine/b.cpp", "mine/c.txt", "my.cu"):
        (tmp_path / name).touch()
    assert complete("kgen check m") == ["mine/", "my.cu "]
    assert complete("kgen check mine/") == ["mine/a.cu ", "mine/b.cpp "]
    assert "my.cu " in complete("kgen check ") and "mine/" not in complete("kgen check ")
    assert complete("kgen check absent/") == []


def test_choices_of_own_templates(complete: Callable[..., list[str]]) -> None:
    found = complete(f"kgen --templates {BUTTERFLY} show v5:topology=b")
    assert found == ["v5:topology=butterfly"]


def test_an_option_and_its_value_in_one_word(complete: Callable[..., list[str]]) -> None:
    assert complete("kgen bench v5 --baseline=v7:ite") == ["--baseline=v7:items="]


def test_commands_and_options(complete: Callable[..., list[str]]) -> None:
    assert complete("kgen exp") == ["explain ", "export "]
    assert complete("kgen build --all --ch") == ["--check "]
    assert complete("kgen run v5 --input x") == []  # the shell's own completion of files


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("kgen explain v8:exp=ex", ["expf", "exp2"]),
        ("kgen explain v8:exp=exp2,ve", ["exp2,vec=", "exp2,vec_scans="]),
        ("kgen explain v8:pre", ["prefetch="]),
        ("kgen explain v6_f", ["v6_fetch "]),
        ("kgen bench v5 --baseline=v6_f", ["v6_fetch "]),
        ("kgen bench v5 --baseline=v7:ite", ["items="]),
    ],
)
def test_what_bash_has_broken_off_is_left_out(
    complete: Callable[..., list[str]], line: str, words: Sequence[str]
) -> None:
    assert complete(line, BREAKS) == words


@needs_bash
def test_a_real_bash(tmp_path: Path) -> None:
    """Keys are typed at a terminal, Tab among them; what bash then runs tells what it completed."""
    kgen = tmp_path / "kgen"
    kgen.write_text(f'#!/bin/sh\nexec {sys.executable} -m kgen "$@"\n')
    kgen.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "TERM": "dumb"}
    environment |= {"PS1": "ready ", "INPUTRC": "/dev/null"}
    controller, terminal = pty.openpty()
    shell = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment,
        start_new_session=True,
    )
    try:
        steps = (
            ('eval "$(kgen completion bash)"; echo do""ne\n', "done\r"),
            ("kgen expla\t", "explain "),
        )
        steps += (("v8:nor\t", "normalize="), ("d\t", "divide"), (",exp=exp2\n", "is valid"))
        printed = "".join(_type(controller, keys, until) for keys, until in steps)
    finally:
        shell.kill()
        shell.wait()
        os.close(controller)
        os.close(terminal)
    assert "v8:exp=exp2,normalize=divide is valid" in printed


def _type(terminal: int, keys: str, until: str) -> str:
    os.write(terminal, keys.encode())
    read, end = "", time.monotonic() + 30
    while until not in read and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            read += os.read(terminal, 4096).decode()
    assert until in read, read
    return read


@pytest.mark.parametrize("shell", Shell)
def test_every_shell_is_told_how_to_ask(spawn: Call, shell: Shell) -> None:
    told = spawn("completion", shell)
    assert told.code == 0 and told.err == ""
    (instruction,) = re.findall(r"_KGEN_COMPLETE=(\w+)", told.out)
    assert instruction == f"complete_{shell}"
    question = {"COMP_LINE": "kgen show v7:ite", "COMP_WORDBREAKS": ":="}
    if shell is Shell.FISH:
        question = {"COMP_WORDS": "kgen show v7:ite", "COMP_CWORD": "v7:ite"}
    answer = spawn(_KGEN_COMPLETE=instruction, **question)
    assert answer.out.strip().endswith("items=") and answer.code == 0
