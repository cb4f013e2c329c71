"""A folder of templates laid over kgen's: new choices, other templates, and what goes wrong there."""

import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from kgen import cpu
from kgen.errors import MissingTool, UsageError
from kgen.evidence.check import check
from kgen.execute import run
from kgen.overlay import Overlay, overlay
from kgen.sources.edited import read_source
from kgen.sources.render import render, template_hash
from kgen.specs.axes import choices, listed_values
from kgen.specs.explain import explain
from kgen.specs.rules import static_shared_bytes
from kgen.specs.spec import Spec
from kgen.specs.variants import checked, parse, spelling
from kgen.sweep.plan import plan
from kgen.sweep.space import Space

EXAMPLES = Path(__file__).parents[2] / "examples"
BUTTERFLY = overlay(EXAMPLES / "butterfly")
SOFTMIN = overlay(EXAMPLES / "softmin")
VARIANT = "v5:topology=butterfly"
Mine = Callable[..., Overlay]


@pytest.fixture
def mine(tmp_path: Path) -> Mine:
    """Make a folder of templates with these files."""

    def make(files: dict[str, str], folder: str = "mine") -> Overlay:
        (tmp_path / folder).mkdir(exist_ok=True)
        for name, text in files.items():
            path = tmp_path / folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return overlay(tmp_path / folder)

    return make


def test_without_a_folder_there_is_no_such_choice() -> None:
    with pytest.raises(UsageError, match="topology=butterfly is not a choice"):
        checked(VARIANT)


def test_a_choice_of_a_users_own_is_asked_its_own_facts() -> None:
    spec = checked(VARIANT, BUTTERFLY)
    assert spec.topology == "butterfly" and spec.topology.needs_identity
    assert not spec.topology.reusable and static_shared_bytes(spec) == 8 * 8
    with pytest.raises(UsageError, match="it combines the results of all warps of the block"):
        checked("v5:topology=butterfly,threads=48", BUTTERFLY)
    assert parse("v5:row_map=warp,topology=butterfly", BUTTERFLY).threads_per_row == 32
    assert "butterfly" in choices("topology", BUTTERFLY) and "butterfly" not in choices("topology")
    assert "butterfly" in listed_values("topology", BUTTERFLY)


@pytest.mark.parametrize(
    "variant",
    [
        VARIANT,
        "v4:topology=butterfly,threads=96",
        "v9:cache=registers,topology=butterfly",
        "t1:topology=butterfly",
        "k2:topology=butterfly,vec=4",
    ],
)
def test_names_and_headers_carry_the_word(variant: str, tmp_path: Path) -> None:
    spec = checked(variant, BUTTERFLY)
    assert parse(spelling(spec), BUTTERFLY) == spec and "topology=butterfly" in spelling(spec)
    source = render(spec)
    assert "_topology_butterfly" in source.filename
    assert "// Every warp reduces by shuffles, then every warp" in source.text
    header = " ".join(source.text.split("#include")[0].replace("//", "").split())
    for words in (" topology=butterfly ", "topology ", "from the templates in butterfly;"):
        assert words in header
    path = tmp_path / "mine.cu"
    path.write_text(source.text, encoding="utf-8")
    again = read_source(path, BUTTERFLY)
    assert (again.spec, again.stem, again.kernels) == (source.spec, source.stem, source.kernels)


def test_a_file_is_not_read_back_without_its_choices(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(render(checked(VARIANT, BUTTERFLY)).text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"mine.cu: topology=butterfly is not.*--templates DIR"):
        read_source(path)


def test_the_example_has_one_barrier_fewer() -> None:
    ours, theirs = render(checked("v5")), render(checked(VARIANT, BUTTERFLY))
    assert [each.text.count("__syncthreads();") for each in (ours, theirs)] == [2, 1]
    # Called again, it needs the barrier that it does not end with, which its callers have.
    assert render(checked("v9:topology=butterfly", BUTTERFLY)).text.count("__syncthreads();") == 2


def require_compiler() -> None:
    try:
        cpu.find_cxx()
    except MissingTool as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("variant", [VARIANT, "v2:topology=butterfly,threads=96"])
def test_the_reduction_is_right(variant: str) -> None:
    require_compiler()
    spec = checked(variant, BUTTERFLY)
    rows = list(check(spec, shapes=[(3, 1), (5, 257)], memory=True, races=True))
    assert [row.reason for row in rows] == ["", ""] and all(row.ok for row in rows)
    x = np.random.default_rng(1).normal(size=(4, 300)).astype(np.float32)
    assert np.allclose(run(spec, x), run(checked("v5"), x), rtol=1e-6, atol=0)


@pytest.mark.parametrize("variant", ["v7:op=softmin", "t1:op=softmin"])
def test_an_operation_is_judged_by_its_own_formula(variant: str) -> None:
    require_compiler()
    spec = checked(variant, SOFTMIN)
    rows = list(check(spec, shapes=[(28, 257)], memory=True, races=True))
    assert all(row.ok for row in rows)
    assert render(spec).text.startswith(f"// softmin_{spec.version}: ")
    x = np.array([[0.0, np.log(3.0)]], np.float32)
    assert np.allclose(run(spec, x), [[0.75, 0.25]])


def test_sweeps_know_the_choice() -> None:
    axes = {"topology": ["two_level", "butterfly", "tree"], "threads": [64, 96]}
    where = "topology != tree or threads > 64"
    made = plan(Space.make(["v5"], axes=axes, where=where, overlay=BUTTERFLY))
    assert {point.variant for point in made.points} == {
        "v5:topology=two_level,threads=64",
        "v5:topology=two_level,threads=96",
        "v5:topology=butterfly,threads=64",
        "v5:topology=butterfly,threads=96",
    }
    where = "topology == butterfly"
    only = plan(Space.make(["v5"], axes=axes, where=where, overlay=BUTTERFLY))
    assert len(only.points) == 2


def test_refused_variants_keep_their_word_where_they_can() -> None:
    refused = parse(f"{VARIANT},threads=48", BUTTERFLY)
    assert explain(refused).nearest_variant == f"{VARIANT},threads=32"


def test_the_hash_covers_the_folder(mine: Mine) -> None:
    contents = [{}, {"a.j2": "a"}, {"a.j2": "b"}, {"b.j2": "b"}, {"choices.toml": "#"}]
    hashes = {
        template_hash(mine(files, f"folder{number}")) for number, files in enumerate(contents)
    }
    assert len(hashes) == len(contents)


def test_a_folder_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no folder of templates .*folder0"):
        overlay(tmp_path / "folder0")


def test_what_editors_leave_changes_nothing(mine: Mine) -> None:
    """Backups, swap files, checkpoints, and a lock, which is a link to nowhere."""
    files = {"state.j2": '{% include "kgen/state.j2" %}'}
    before = template_hash(mine(files))
    names = ["state.j2~", "#state.j2#", ".state.j2.swp", "._state.j2", ".keep/state.j2"]
    edited = mine(files | dict.fromkeys(names, "{% if %}"), "edited")
    assert edited.folder
    (edited.folder / ".#state.j2").symlink_to("user@host.123:456")
    (edited.folder / "gone.j2").symlink_to("nowhere.j2")
    assert template_hash(edited) == before
    assert "merge" in render(checked("v5", edited)).text


def test_byte_order_marks(mine: Mine) -> None:
    over = mine(
        {
            "choices.toml": "\ufeff[topology.mine]\nlike = 'two_level'\n",
            "topology/mine.j2": "\ufeff// Mine.\n{% include 'kgen/topology/two_level.j2' %}",
        }
    )
    text = render(checked("v5:topology=mine", over)).text
    assert "\n// Mine.\n" in text and "\ufeff" not in text


def test_a_folder_in_the_home_folder(mine: Mine, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = mine({"choices.toml": ""}).folder
    assert folder
    monkeypatch.setenv("HOME", str(folder.parent))
    assert overlay(Path("~/mine")).folder == folder


def stem_in_a_worker(spec: Spec) -> str:
    """Render a spec that came from another process."""
    return render(spec).stem


def test_a_spec_takes_its_templates_into_other_processes() -> None:
    spec = checked(VARIANT, BUTTERFLY)
    again = pickle.loads(pickle.dumps(spec))
    assert again == spec and again.topology.shared_values == spec.topology.shared_values
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as workers:
        assert workers.submit(stem_in_a_worker, spec).result() == render(spec).stem


def test_a_template_of_the_same_name_is_used_instead(mine: Mine) -> None:
    before = render(checked("v5")).text
    over = mine({"state.j2": '// Mine.\n{% include "kgen/state.j2" %}'})
    text = render(checked("v5", over)).text
    assert "// Mine.\n// What is known" in text
    assert text.replace("// Mine.\n", "").split("#include", 1)[1] == before.split("#include", 1)[1]


def test_a_choice_of_any_axis_that_has_templates(mine: Mine) -> None:
    over = mine(
        {
            "choices.toml": '[row_loop.again]\nlike = "grid_stride"\nphrase = "rows again"\n'
            '[update.mine]\nlike = "online"\n',
            "update/mine.j2": '// Another update.\n{% include "kgen/update/online.j2" %}',
        }
    )
    spec = checked("v4:update=mine,row_loop=again,grid=4", over)
    assert spec.is_online and spec.row_loop.repeats and spec.row_loop.template == "grid_stride"
    text = render(spec).text
    assert "// Another update." in text and ", rows again, online softmax" in text
    assert text.startswith("// softmax_v4_row_loop_again_update_mine_grid4: one block per row")


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ("[topology", "is not TOML"),
        ("[topologie.mine]\n", "no choices can be added to 'topologie'; did you mean 'topology'"),
        ("[normalize.mine]\nlike = 'divide'\n", "no choices can be added to 'normalize'"),
        ("topology = 4\n", r"topology = 4 is not a table; begin one with \[topology.WORD\]"),
        ("[topology]\nmine = 4\n", r"\[topology.mine\] is not a table of facts"),
        ("[topology.mine]\nlike = 4\n", "like = 4 is not a choice"),
        ("[topology.mine]\nlikes = 'tree'\n", "has no fact 'likes'; did you mean 'like'"),
        ("[topology.mine]\nconnects = 4\n", "connects = 4 is not a formula; write one in quotes"),
        ("[topology.mine]\nconnects = 'a +'\n", "'a .' is not a formula"),
        ("[topology.mine]\nconnects = 'open(1)'\n", "there is no function 'open'"),
        ("[topology.mine]\nconnects = 'a.b'\n", "a.b cannot stand in a formula"),
        ("[topology.mine]\nreusable = 1\n", "reusable = 1 is not true or false"),
        ("[topology.mine]\nlike = 'tre'\n", "like = 'tre' is not a choice; did you mean 'tree'"),
        ("[topology.tree]\nlike = 'warp'\n", "topology has a choice tree already; take another"),
        ("[topology.'A b']\nlike = 'warp'\n", r"\[topology.A b\] needs a word of small letters"),
        ("[topology.mine]\nhelp = 'mine'\n", "has no template; write .*topology/mine.j2"),
    ],
)
def test_what_is_wrong_with_choices(toml: str, sentence: str, mine: Mine) -> None:
    over = mine({"choices.toml": toml})
    with pytest.raises(UsageError, match=f"choices.toml.*{sentence}"):
        checked("v5:topology=mine", over)


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("{% if %}", "mine.j2:1: the templates cannot be filled: Expected an expression"),
        ("\n{{ s.colour }}", "mine.j2:2: .*cannot be filled: .*no attribute 'colour'"),
        ("\n\n{{ oops }}", "mine.j2:3: .*cannot be filled: 'oops' is undefined"),
        ("\n{{ 1 // 0 }}", "mine.j2:2: .*cannot be filled: .*division"),
        ("\n{{ s.replace(1) }}", "mine.j2:2: .*cannot be filled: .*positional argument"),
        ('\n{% include "topology/none.j2" %}', "mine.j2:2: .*is no template topology/none.j2"),
        ("{% extends 'none.j2' %}", "mine.j2:1: .*is no template none.j2"),
        (
            '\n{% from "kgen/walk.j2" import x %}{{ x() }}',
            "mine.j2:2: .*walk.j2.*requested name 'x'",
        ),
        ('\n{% include "topology/mine.j2" %}', "mine.j2:2: .*a template includes itself"),
        ('{% include "broken.j2" %}', "broken.j2:3: .*unexpected 'end of print"),
        ('{% include "latin.j2" %}', "latin.j2 is not UTF-8: "),
    ],
)
def test_what_is_wrong_with_templates(template: str, sentence: str, mine: Mine) -> None:
    over = mine(
        {
            "choices.toml": "[topology.mine]\nlike = 'two_level'\n",
            "topology/mine.j2": template,
            "broken.j2": "\n\n{{ 1 + }}",
        }
    )
    assert over.folder
    (over.folder / "latin.j2").write_bytes(b"caf\xe9")
    with pytest.raises(UsageError, match=f"^{over.folder}/.*{sentence}"):
        render(checked("v5:topology=mine", over))
