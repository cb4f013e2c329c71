"""Where the CUDA programs are searched, and in which order."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kgen.errors import MissingTool
from kgen.toolchain import find, find_disassembler, find_nvcc

MakeProgram = Callable[[str, str], Path]


def _script(version: str) -> str:
    return f"#!/bin/sh\necho 'Cuda compilation tools, release x, V{version}'\n"


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any CUDA program."""
    for variable in ("KGEN_NVCC", "KGEN_NVDISASM", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(find, "_DEFAULT_TOOLKIT", tmp_path / "default")
    monkeypatch.setattr("sys.path", [str(tmp_path / "site")])
    # Once another test's library has imported it, its folders are remembered.
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)


def test_order_of_the_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_program: MakeProgram
) -> None:
    """Each place is found when it is the best one; places are added from the last to the first."""
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "path"))
    places = [
        ("site/nvidia/cu13/bin/nvcc", "NVIDIA's wheels"),
        ("default/bin/nvcc", str(tmp_path / "default")),
        ("path/bin/nvcc", "$CUDA_PATH"),
        ("home/bin/nvcc", "$CUDA_HOME"),
        ("bin/nvcc", "PATH"),
    ]
    for number, (place, found_by) in enumerate(places):
        path = make_program(place, _script(f"13.0.{number}"))
        tool = find_nvcc()
        assert (tool.path, tool.found_by, tool.version) == (path, found_by, f"13.0.{number}")
    monkeypatch.setenv("KGEN_NVCC", str(make_program("mine/nvcc-12", _script("12.8.1"))))
    assert (find_nvcc().found_by, find_nvcc().version) == ("$KGEN_NVCC", "12.8.1")


def test_disassembler_is_searched_alike(make_program: MakeProgram) -> None:
    path = make_program("site/nvidia/cu13/bin/nvdisasm", _script("13.2.86"))
    assert (find_disassembler().path, find_disassembler().version) == (path, "13.2.86")


@pytest.mark.parametrize(
    "broken",
    ["#!/bin/sh\necho V13.0.88\nexit 1\n", "#!/bin/sh\necho hello\n", "#!/no/such/shell\n"],
)
def test_broken_program_is_passed_over(make_program: MakeProgram, broken: str) -> None:
    make_program("bin/nvcc", broken)
    works = make_program("default/bin/nvcc", _script("13.0.88"))
    assert find_nvcc().path == works


def test_named_program_that_does_not_run_is_not_replaced(
    monkeypatch: pytest.MonkeyPatch, make_program: MakeProgram
) -> None:
    make_program("bin/nvcc", _script("13.0.88"))
    monkeypatch.setenv("KGEN_NVCC", "/no/such/nvcc")
    with pytest.raises(MissingTool, match=r"KGEN_NVCC=/no/such/nvcc .* unset"):
        find_nvcc()


@pytest.mark.parametrize("named", ["my tools/nvcc", "~/my tools/nvcc", "nvcc"])
def test_ways_to_name_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_program: MakeProgram, named: str
) -> None:
    path = make_program("my tools/nvcc", _script("13.0.88"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "my tools")
    monkeypatch.setenv("KGEN_NVCC", named)
    assert find_nvcc().path == path
    monkeypatch.setenv("KGEN_NVCC", f"ccache {named}")
    with pytest.raises(MissingTool, match="is not a nvcc that runs; name a program there, without"):
        find_nvcc()


def test_missing_programs_say_how_to_get_them() -> None:
    with pytest.raises(MissingTool, match=r"no nvcc .*pip install '\.\[nvcc\]'.*KGEN_NVCC"):
        find_nvcc()
    with pytest.raises(MissingTool, match=r"no nvdisasm .*pip install '\.\[nvcc\]'"):
        find_disassembler()


def test_flags_the_user_adds_to_nvcc_do_not_hide_it(
    monkeypatch: pytest.MonkeyPatch, make_program: MakeProgram
) -> None:
    picky = '#!/bin/sh\n[ -z "$NVCC_APPEND_FLAGS" ] && echo "V13.0.88"\n'
    make_program("bin/nvcc", picky)
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "--no-such-flag")
    assert find_nvcc().version == "13.0.88"
