"""`kgen --templates DIR COMMAND` and the environment variable do the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).parents[2] / "examples" / "butterfly"


def test_a_variant_of_the_example_is_built(spawn: Callable[..., Any], tmp_path: Path) -> None:
    arguments = ["build", "--variant", "v5:topology=butterfly", "--out", "out"]
    by_option = spawn("--templates", EXAMPLE, *arguments)
    assert (by_option.code, by_option.err) == (0, "")
    path = tmp_path / "out" / "softmax_v5_topology_butterfly.cu"
    text = path.read_text()
    path.unlink()
    by_variable = spawn(*arguments, KGEN_TEMPLATES=str(EXAMPLE))
    assert by_variable.code == 0 and path.read_text() == text


def test_a_folder_that_is_not_there(spawn: Callable[..., Any]) -> None:
    ended = spawn("--templates", "nowhere", "list")
    assert ended.code == 2
    assert ended.err.startswith("kgen: there is no folder of templates ")


def test_templates_that_cannot_be_filled_are_no_candidates_fault(
    spawn: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "mine" / "topology").mkdir(parents=True)
    (tmp_path / "mine" / "topology" / "two_level.j2").write_text("{{ nope }}")
    options = "--templates mine bench v5 --on cpu --rows 3 --cols 5 --db x.sqlite".split()
    ended = spawn(*options, CXX=None)
    assert ended.code == 2 and ended.err.endswith("cannot be filled: 'nope' is undefined\n")
    assert "Traceback" not in ended.err
