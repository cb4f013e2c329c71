"""A reduction and an operation of a user's own, in one folder: every command takes them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgen import cpu
from kgen.errors import MissingTool

EXAMPLES = Path(__file__).parents[2] / "examples"
VARIANT = "v5:op=softmin,topology=butterfly"
STEM = "softmin_v5_topology_butterfly"
SHAPE = ("--rows", 3, "--cols", 67)
# A command with its arguments, and what it must print.
COMMANDS = {
    ("show", VARIANT): "butterfly",
    ("explain", VARIANT): f"{VARIANT} is valid.",
    ("diff", "v5", VARIANT): "+    return warp_reduce<WARP_SIZE>(state, WHOLE_WARP);",
    ("build", "--variant", VARIANT, "--out", "out"): f"{STEM}.cu",
    ("export", VARIANT, "--out", "out"): f"{STEM}.py",
    ("sass", VARIANT): "EXIT",
    ("run", VARIANT, "--input", "x.npy", "--output", "y.npy"): "",
    ("check", VARIANT, *SHAPE, "--memory", "--races"): "ok",
    ("count", VARIANT, *SHAPE): VARIANT,
    ("profile", VARIANT, *SHAPE, "--on", "cpu"): VARIANT,
    ("bench", "v5", VARIANT, *SHAPE, "--on", "cpu", "--db", "db"): VARIANT,
    (
        *("sweep", "--variants", "v5", "--axis", "op=softmax,softmin", *SHAPE),
        *("--axis", "topology=two_level,butterfly", "--on", "cpu", "--db", "db"),
    ): "butterfly",
}


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder with both examples."""
    folder = tmp_path / "mine"
    declared = ""
    for example in ("butterfly", "softmin"):
        shutil.copytree(EXAMPLES / example, folder, dirs_exist_ok=True)
        declared += (folder / "choices.toml").read_text(encoding="utf-8")
    (folder / "choices.toml").write_text(declared, encoding="utf-8")
    np.save(tmp_path / "x.npy", np.array([[0.0, np.log(3.0)]], np.float32))
    return folder


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_every_command_takes_them(
    command: tuple[object, ...], call: Callable[..., Any], mine: Path, tmp_path: Path
) -> None:
    try:
        cpu.find_cxx()
        ended = call("--templates", mine, *command)
    except MissingTool as missing:
        pytest.skip(str(missing))
    if ended.code == 3:
        pytest.skip(ended.err)
    assert ended.code == 0, ended.err
    assert COMMANDS[command] in ended.out
    if command[0] == "run":
        assert np.allclose(np.load(tmp_path / "y.npy"), [[0.75, 0.25]])


def test_an_architecture_that_lacks_what_a_choice_uses(
    call: Callable[..., Any], mine: Path
) -> None:
    path = mine / "choices.toml"
    path.write_text(
        path.read_text().replace("[topology.butterfly]", '[topology.butterfly]\nrequires = "sm_90"')
    )
    ended = call(
        "--templates", mine, "build", "--variant", VARIANT, "--out", "out", "--arch", "sm_80"
    )
    if ended.code == 3 or "not compiled" in ended.out:
        pytest.skip(ended.err or ended.out)
    assert ended.code == 2
    assert f"{STEM}.cu uses what sm_80 lacks; compile it for sm_90 or newer" in ended.err
    header = (mine.parent / "out" / f"{STEM}.cu").read_text().split("#include")[0]
    assert "sm_90 or newer" in " ".join(header.replace("//", "").split())
