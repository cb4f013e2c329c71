"""A folder of templates before kgen's: new choices, other templates, and what goes wrong there."""

import multiprocessing
import pickle
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import kgen
from kgen import cpu
from kgen.errors import MissingTool, UsageError
from kgen.evidence.check import check
from kgen.overlay import VARIABLE, use_templates, user_template_dir
from kgen.sources.edited import read_source
from kgen.sources.render import render, template_hash
from kgen.specs.axes import choices, listed_values
from kgen.specs.choices import Topology, Update
from kgen.specs.explain import explain
from kgen.specs.rules import problems
from kgen.specs.spec import Spec
from kgen.specs.variants import checked, parse, spelling
from kgen.sweep.plan import plan
from kgen.sweep.space import Space

EXAMPLE = Path(__file__).parents[2] / "examples" / "butterfly"
VARIANT = "v5:topology=butterfly"


@pytest.fixture
def butterfly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for templates in the example first."""
    monkeypatch.setenv(VARIABLE, "")
    use_templates(EXAMPLE)


@pytest.fixture
def overlay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Make a folder of templates with these files and look there first."""

    def make(files: dict[str, str], folder: str = "mine") -> Path:
        (tmp_path / folder).mkdir(exist_ok=True)
        for name, text in files.items():
            path = tmp_path / folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        monkeypatch.setenv(VARIABLE, str(tmp_path / folder))
        return tmp_path / folder

    return make


def test_without_a_folder_there_is_no_such_choice() -> None:
    with pytest.raises(UsageError, match="topology=butterfly is not a choice"):
        checked(VARIANT)


def test_a_new_choice_is_what_it_is_like_but_for_its_name(butterfly: None) -> None:
    spec, like = checked(VARIANT), checked("v5")
    assert spec.topology is Topology.TWO_LEVEL and spec.written["topology"] == "butterfly"
    assert spec != like and spec.replace(topology=Topology.TWO_LEVEL) == like
    assert spec.replace(threads_per_block=96).written["topology"] == "butterfly"
    assert spec.replace(topology=Topology.TREE).own == ()
    assert [p.message for p in problems(spec.replace(threads_per_block=48))] == [
        p.message for p in problems(like.replace(threads_per_block=48))
    ]
    assert "butterfly" in choices("topology") and "butterfly" in listed_values("topology")


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
def test_names_and_headers_carry_the_word(variant: str, butterfly: None, tmp_path: Path) -> None:
    spec = checked(variant)
    assert parse(spelling(spec)) == spec and "topology=butterfly" in spelling(spec)
    source = render(spec)
    assert "_topology_butterfly" in source.filename
    assert "// topology=butterfly: every warp reduces" in source.text
    assert "shuffle_down" not in source.text
    header = source.text.split("#include")[0]
    for words in (" topology=butterfly ", "topology ", "from the templates in butterfly;"):
        assert words in header
    path = tmp_path / "mine.cu"
    path.write_text(source.text, encoding="utf-8")
    again = read_source(path)
    assert (again.spec, again.stem, again.kernels) == (source.spec, source.stem, source.kernels)


def test_a_file_is_not_read_back_without_its_choices(
    butterfly: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(render(checked(VARIANT)).text, encoding="utf-8")
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(UsageError, match=r"mine.cu: topology=butterfly is not.*--templates DIR"):
        read_source(path)


def test_the_example_has_one_barrier_fewer(butterfly: None) -> None:
    def barriers(variant: str) -> int:
        reduction = re.search(r"row_reduce\(typename.*?\n}\n", render(checked(variant)).text, re.S)
        assert reduction is not None
        return reduction[0].count("__syncthreads();")

    assert (barriers("v5"), barriers(VARIANT)) == (3, 2)


def test_the_example_computes_the_softmax_as_ours_does(butterfly: None) -> None:
    try:
        cpu.find_cxx()
    except MissingTool as missing:
        pytest.skip(str(missing))
    for variant in (VARIANT, "v2:topology=butterfly,threads=96"):
        rows = list(check(checked(variant), shapes=[(3, 1), (5, 257)], memory=True, races=True))
        assert [row.reason for row in rows] == ["", ""] and all(row.ok for row in rows)
    x = np.random.default_rng(1).normal(size=(4, 300)).astype(np.float32)
    assert np.allclose(kgen.run(VARIANT, x), kgen.run("v5", x), rtol=1e-6, atol=0)


def test_sweeps_know_the_choice(butterfly: None) -> None:
    axes = {"topology": ["two_level", "butterfly", "tree"], "threads": [64, 96]}
    made = plan(Space.make(["v5"], axes=axes, where="topology != tree or threads > 64"))
    assert {point.variant for point in made.points} == {
        "v5:topology=two_level,threads=64",
        "v5:topology=two_level,threads=96",
        "v5:topology=butterfly,threads=64",
        "v5:topology=butterfly,threads=96",
    }
    only = plan(Space.make(["v5"], axes=axes, where="topology == butterfly"))
    assert len(only.points) == 2


def test_refused_variants_keep_their_word_where_they_can(butterfly: None) -> None:
    assert explain(parse(f"{VARIANT},threads=48")).nearest_variant == f"{VARIANT},threads=32"


def test_the_hash_covers_the_folder(overlay: Callable[..., Path]) -> None:
    contents = [{}, {"a.j2": "a"}, {"a.j2": "b"}, {"b.j2": "b"}, {"choices.toml": "#"}]
    hashes = []
    for number, files in enumerate(contents):
        overlay(files, f"folder{number}")
        hashes.append(template_hash())
    assert len(set(hashes)) == len(contents)
    overlay({}, "folder0").rmdir()
    with pytest.raises(UsageError, match=r"there is no folder of templates .*folder0"):
        template_hash()


def test_what_editors_leave_changes_nothing(overlay: Callable[..., Path]) -> None:
    """Backups, swap files, checkpoints, and a lock, which is a link to nowhere."""
    files = {"merge.j2": '{% include "kgen/merge.j2" %}'}
    overlay(files)
    before = template_hash()
    names = ["merge.j2~", "#merge.j2#", ".merge.j2.swp", "._merge.j2", ".keep/merge.j2"]
    folder = overlay(files | dict.fromkeys(names, "{% if %}"), "edited")
    (folder / ".#merge.j2").symlink_to("user@host.123:456")
    (folder / "gone.j2").symlink_to("nowhere.j2")
    assert template_hash() == before
    assert "merge" in render(checked("v5")).text


def test_byte_order_marks(overlay: Callable[..., Path]) -> None:
    overlay(
        {
            "choices.toml": "\ufeff[topology.mine]\nlike = 'two_level'\n",
            "topology/mine.j2": "\ufeff// Mine.\n{% include 'kgen/topology/two_level.j2' %}",
        }
    )
    text = render(checked("v5:topology=mine")).text
    assert "\n// Mine.\n" in text and "\ufeff" not in text


def test_a_folder_in_the_home_folder(
    overlay: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = overlay({"choices.toml": ""})
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv(VARIABLE, "~/mine")
    assert user_template_dir() == folder
    monkeypatch.setenv(VARIABLE, "")
    use_templates(Path("~/mine"))
    assert user_template_dir() == folder


def stem_in_a_worker(spec: Spec) -> str:
    """Render a spec that came from another process."""
    return render(spec).stem


def test_processes_that_are_started_have_the_templates(butterfly: None) -> None:
    spec = checked(VARIANT)
    assert pickle.loads(pickle.dumps(spec)) == spec
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as workers:
        assert workers.submit(stem_in_a_worker, spec).result() == render(spec).stem


def test_a_template_of_the_same_name_is_used_instead(overlay: Callable[..., Path]) -> None:
    before = render(checked("v5")).text
    overlay({"merge.j2": '// Mine.\n{% include "kgen/merge.j2" %}'})
    text = render(checked("v5")).text
    assert "// Mine.\n// Both sums are rescaled" in text
    assert text.replace("// Mine.\n", "").split("#include", 1)[1] == before.split("#include", 1)[1]


def test_a_choice_of_any_axis_that_has_templates(overlay: Callable[..., Path]) -> None:
    overlay(
        {
            "choices.toml": '[row_map.block2]\nlike = "block"\n[update.mine]\nlike = "online"\n',
            "row_map/block2.j2": '// Another block.\n{% include "kgen/row_map/block.j2" %}',
            "update/mine.j2": '// Another update.\n{% include "kgen/update/online.j2" %}',
        }
    )
    spec = checked("v4:update=mine,row_map=block2")
    assert spec.update is Update.ONLINE
    text = render(spec).text
    assert "// Another block." in text and "// Another update." in text
    assert text.startswith("// softmax_v4_row_map_block2_update_mine: row_map block2, update mine,")


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ("[topology", "is not TOML"),
        ("[topologie.mine]\n", "no choices can be added to 'topologie'; did you mean 'topology'"),
        ("[normalize.mine]\nlike = 'divide'\n", "no choices can be added to 'normalize'"),
        ("topology = 4\n", r"topology = 4 is not a table; begin one with \[topology.WORD\]"),
        ("[topology]\nmine = 4\n", r"\[topology.mine\] takes like and help"),
        ("[topology.mine]\nlike = 4\n", r"\[topology.mine\] takes like and help"),
        ("[topology.mine]\nlikes = 'tree'\n", "has no key 'likes'; did you mean 'like'"),
        ("[topology.mine]\n", "like = '' is not a choice"),
        ("[topology.mine]\nlike = 'tre'\n", "like = 'tre' is not a choice; did you mean 'tree'"),
        ("[topology.mine]\nlike = 'none'\n", "like = 'none' is not a choice"),
        ("[topology.tree]\nlike = 'warp'\n", "topology has a choice tree already; take another"),
        ("[topology.'A b']\nlike = 'warp'\n", r"\[topology.A b\] needs a word of small letters"),
        ("[topology.mine]\nlike = 'tree'\n", "has no template; write .*topology/mine.j2"),
    ],
)
def test_what_is_wrong_with_choices(toml: str, sentence: str, overlay: Callable[..., Path]) -> None:
    overlay({"choices.toml": toml})
    with pytest.raises(UsageError, match=f"choices.toml.*{sentence}"):
        checked("v5:topology=mine")


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
            '\n{% from "kgen/each.j2" import x %}{{ x() }}',
            "mine.j2:2: .*each.j2.*requested name 'x'",
        ),
        ('\n{% include "topology/two_level.j2" %}', "mine.j2:2: .*a template includes itself"),
        ('{% include "broken.j2" %}', "broken.j2:3: .*unexpected 'end of print"),
        ('{% include "latin.j2" %}', "latin.j2 is not UTF-8: "),
    ],
)
def test_what_is_wrong_with_templates(
    template: str, sentence: str, overlay: Callable[..., Path]
) -> None:
    folder = overlay(
        {
            "choices.toml": "[topology.mine]\nlike = 'two_level'\n",
            "topology/mine.j2": template,
            "broken.j2": "\n\n{{ 1 + }}",
        }
    )
    (folder / "latin.j2").write_bytes(b"caf\xe9")
    with pytest.raises(UsageError, match=f"^{folder}/.*{sentence}"):
        render(checked("v5:topology=mine"))
