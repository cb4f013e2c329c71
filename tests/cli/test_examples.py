"""The examples in each command's --help: there, and right."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import click
import pytest
import typer

from kgen.cli.app import app
from kgen.cli.examples import EXAMPLES
from kgen.execute import find_target
from kgen.specs.variants import checked
from kgen.sweep.space import parse_setting
from tests.cli.conftest import Ended

Call = Callable[..., Ended]
ROOT = typer.main.get_command(app)
ALL = [arguments for examples in EXAMPLES.values() for arguments, _ in examples]
# What ends at once wherever it is called, and how.
QUICK = {
    **dict.fromkeys((each for name in ("list", "show", "diff", "doctor", "completion", "export", "results") for each, _ in EXAMPLES[name]), 0),
    "build v7 --items 4": 0,
    "explain v5:threads=48": 1,
    "explain v7:items=1 --cols 4096": 1,
    "explain v13 --arch sm_80": 1,
}  # fmt: skip


def test_every_command_has_examples_and_shows_them(call: Call) -> None:
    assert isinstance(ROOT, click.Group)
    assert list(EXAMPLES.keys() ^ ROOT.commands.keys()) == []
    for command, examples in EXAMPLES.items():
        told = call(command, "--help").out
        for arguments, purpose in examples:
            assert arguments.split()[0] == command
            line = f" kgen {arguments}" + f"  # {purpose}" * bool(purpose)
            assert line in told and len(line) <= 80


@pytest.mark.parametrize("arguments", ALL)
def test_examples_can_be_parsed(arguments: str) -> None:
    """Options and values are known to the command, variants and axes to kgen."""
    assert isinstance(ROOT, click.Group)
    name, *words = shlex.split(arguments)
    values = ROOT.commands[name].make_context(name, words).params
    for parameter in ("variant", "old", "new", "baseline"):
        if (variant := values.get(parameter)) and "*" not in variant and name != "explain":
            find_target(variant)
    variants = values.get("variants") or ()
    for variant in variants.split(",") if isinstance(variants, str) else variants:
        checked(variant)
    for setting in values.get("axis") or ():
        parse_setting(setting)


@pytest.mark.parametrize(("arguments", "code"), QUICK.items())
def test_quick_examples_do_what_they_say(
    call: Call, no_nvcc: None, monkeypatch: pytest.MonkeyPatch, arguments: str, code: int
) -> None:
    monkeypatch.setenv("KGEN_DB", "absent.sqlite")
    ended = call(*shlex.split(arguments))
    assert (ended.code, ended.err) == (code, "")
    assert ended.out
