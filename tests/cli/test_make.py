"""build and export: the files they write, what they say of the kernels, and drift."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import kgen
from kgen.specs.versions import VERSIONS
from tests.cli.conftest import Ended

Call = Callable[..., Ended]

GENERATED = Path(__file__).parents[2] / "generated"
RESOURCES = {
    "kernel",
    "registers",
    "stack_bytes",
    "spill_store_bytes",
    "spill_load_bytes",
    "static_shared_bytes",
    "dynamic_shared_bytes",
    "occupancy",
    "limited_by",
}
# Stands in for an nvcc that knows two architectures, notes how it is called, and refuses to compile.
REFUSING_NVCC = """#!/bin/sh
case "$1" in
--version) echo "Cuda compilation tools, release 13.0, V13.0.88"; exit ;;
--list-gpu-code) printf 'sm_75\\nsm_90\\n'; exit ;;
esac
echo "$@" >> "$(dirname "$0")/calls"
echo "nvcc fatal   : the licence has expired"
exit 1
"""


@pytest.fixture
def refusing_nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the stand-in and return the file of its calls."""
    program = tmp_path / "bin" / "nvcc"
    program.parent.mkdir()
    program.write_text(REFUSING_NVCC)
    program.chmod(0o755)
    monkeypatch.setenv("KGEN_NVCC", str(program))
    monkeypatch.setenv("KGEN_CACHE_DIR", str(tmp_path / "cache"))
    return program.parent / "calls"


def test_build_writes_and_compiles_a_variant_for_several_architectures(
    call: Call, nvcc: None
) -> None:
    built = call("build", "--variant", "v7", "--items", 8, "--threads", 128,
                 "--arch", "sm_75, sm_90", "--out", "made/here", "--json")  # fmt: skip
    assert built.code == 0 and built.err == ""
    assert built.json["file"] == "made/here/softmax_v7_items8_threads128.cu"
    assert Path(built.json["file"]).read_text() == kgen.render("v7:items=8,threads=128").text
    (kernel,) = built.json["kernels"]
    assert kernel["kernel"] == "softmax_v7_items8_threads128"
    assert list(kernel["architectures"]) == ["sm_75", "sm_90"]
    for resources in kernel["architectures"].values():
        assert resources.keys() == RESOURCES
        assert resources["registers"] >= 8 * 4 and 0 < resources["occupancy"] <= 1
        assert resources["spill_store_bytes"] == resources["spill_load_bytes"] == 0
        assert resources["static_shared_bytes"] == 128 // 32 * 8


def test_build_tells_what_every_kernel_takes(call: Call, nvcc: None) -> None:
    built = call("build", "--variant", "t1", "--arch", "sm_90")
    assert built.code == 0 and built.out.startswith("wrote generated/softmax_t1.cu\n")
    assert [words[:2] for words in built.rows()[2:]] == [
        [f"softmax_t1_{phase}", "sm_90"] for phase in ("max", "sum", "write")
    ]
    assert all(words[8].endswith("%") for words in built.rows()[2:])


def test_a_shared_cache_lowers_the_occupancy_on_long_rows(call: Call, nvcc: None) -> None:
    def occupancy(cols: int) -> float:
        built = call("build", "--variant", "v5:cache=shared", "--cols", cols, "--json").json
        return float(built["kernels"][0]["architectures"]["sm_90"]["occupancy"])

    assert occupancy(64) == 1.0 and occupancy(40000) < 0.2


def test_flags_reach_nvcc_and_its_own_words_the_user(call: Call, refusing_nvcc: Path) -> None:
    refused = call("build", "--variant", "v5", "--arch", "sm_75", "--maxrregcount", 40,
                   "--use_fast_math", "--lineinfo")  # fmt: skip
    assert refused.code == 1
    assert refused.err == (
        "kgen: nvcc rejected softmax_v5.cu:\nnvcc fatal   : the licence has expired\n"
    )
    assert Path("generated/softmax_v5.cu").is_file()
    (flags,) = refusing_nvcc.read_text().splitlines()
    assert {"-arch=sm_75", "-maxrregcount=40", "--use_fast_math", "-lineinfo"} <= set(flags.split())
    call("build", "--variant", "v5")
    plain = refusing_nvcc.read_text().splitlines()[1].split()
    assert "-arch=sm_90" in plain
    assert not {"--use_fast_math", "-lineinfo"} & set(plain) and "maxrregcount" not in str(plain)


def test_without_an_nvcc_the_source_is_written(call: Call, no_nvcc: None) -> None:
    built = call("build", "--variant", "v6", "--vec", 2, "--out", "here")
    assert built.code == 0
    first, note = built.out.splitlines()
    assert first == "wrote here/softmax_v6_vec2.cu" and Path("here/softmax_v6_vec2.cu").is_file()
    assert note.startswith("not compiled: no nvcc on PATH")
    assert "get one with pip install '.[nvcc]' in kgen's folder" in note


def test_without_an_nvcc_json_stays_json(call: Call, no_nvcc: None) -> None:
    built = call("build", "--variant", "v6", "--json")
    assert built.json == {
        "file": "generated/softmax_v6.cu",
        "kernels": [{"kernel": "softmax_v6", "architectures": {}}],
    }
    assert built.err.startswith("not compiled: no nvcc")


def test_auto_items_cover_the_row_length(call: Call, no_nvcc: None) -> None:
    built = call("build", "--variant", "v7", "--cols", 9000, "--json").json
    assert built["kernels"][0]["kernel"] == "softmax_v7_items9"
    assert "ITEMS_PER_THREAD = 9;" in Path(built["file"]).read_text()


def test_the_host_version_has_nothing_for_a_gpu(call: Call) -> None:
    built = call("build", "--variant", "cpu", "--json").json
    assert built["file"] == "generated/softmax_cpu.cpp" and Path(built["file"]).is_file()
    assert built["kernels"] == [{"kernel": "softmax_cpu", "architectures": {}}]
    told = call("build", "cpu").out.splitlines()
    assert told[1:] == ["not compiled: what runs on the host is not for nvcc"]


def test_all_versions_are_written_with_a_manifest(call: Call, no_nvcc: None) -> None:
    built = call("build", "--all", "--out", "all", "--json")
    assert built.code == 0
    assert [Path(entry["file"]).stem for entry in built.json] == [f"softmax_{v}" for v in VERSIONS]
    written = {path.name: path.read_bytes() for path in Path("all").iterdir()}
    assert written.keys() == {path.name for path in GENERATED.iterdir()}
    files = json.loads(written["manifest.json"])["files"]
    assert files["softmax_v7.cu"]["kernels"] == ["softmax_v7"]
    again = call("build", "--all", "--out", "all")
    assert again.out.startswith(f"wrote {len(VERSIONS) + 1} files to all\n")
    checked = call("build", "--all", "--check", "--out", "all")
    assert (checked.code, checked.out) == (0, "all is what the templates give.\n")
    assert {path.name: path.read_bytes() for path in Path("all").iterdir()} == written


def test_the_files_in_the_repository_are_what_the_templates_give(call: Call) -> None:
    checked = call("build", "--all", "--check", "--out", GENERATED)
    assert checked.code == 0, checked.err


def test_drift_is_named_file_by_file_and_left_alone(call: Call) -> None:
    folder = Path("copy")
    shutil.copytree(GENERATED, folder)
    with (folder / "softmax_v5.cu").open("a") as file:
        file.write("// edited\n")
    (folder / "softmax_v6.cu").unlink()
    (folder / "softmax_mine.cu").write_text("// a user's own\n")
    (folder / "softmax_old.cu").write_text("// of a version that is gone\n")
    listed = (
        (folder / "manifest.json")
        .read_text()
        .replace('"files": {', '"files": {"softmax_old.cu": {},')
    )
    (folder / "manifest.json").write_text(listed)
    (folder / "notes.txt").write_text("not a source\n")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    drift = call("build", "--all", "--check", "--out", folder)
    assert drift.code == 1 and drift.out == ""
    assert drift.err == (
        "kgen: copy is not what the templates give: manifest.json differs; "
        "softmax_old.cu belongs to no version; softmax_v5.cu differs; softmax_v6.cu is missing; "
        "run kgen build --all and look at the difference\n"
    )
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_export_writes_the_source_and_a_script(call: Call) -> None:
    exported = call("export", "v7", "--items", 2, "--out", "out")
    assert exported.code == 0
    assert exported.out.splitlines() == [
        "wrote out/softmax_v7_items2.cu",
        "wrote out/softmax_v7_items2.py",
    ]
    assert Path("out/softmax_v7_items2.cu").read_text() == kgen.render("v7:items=2").text
    compile(Path("out/softmax_v7_items2.py").read_text(), "softmax_v7_items2.py", "exec")


def test_export_covers_the_row_length(call: Call) -> None:
    exported = call("export", "v7", "--cols", 9000)
    assert exported.out.startswith("wrote exported/softmax_v7_items9.cu\n")


def test_export_of_an_edited_file_keeps_the_edit(call: Call, edited: Callable[..., Path]) -> None:
    path = edited("v5", "// variant", "// edited\n// variant")
    assert call("export", path).code == 0
    assert "// edited" in Path("exported", path.name).read_text()
    assert f"python {path.stem}.py" in Path("exported", path.name).with_suffix(".py").read_text()


def test_a_file_edited_by_hand_is_not_overwritten(call: Call) -> None:
    assert call("build", "--variant", "v8", "--out", "own").code == 0
    file = Path("own/softmax_v8.cu")
    edited = file.read_text().replace("row >= rows", "row > rows - 1")
    file.write_text(edited)
    refused = call("build", "--variant", "v8", "--out", "own")
    assert refused.code == 2 and "own/softmax_v8.cu was edited by hand" in refused.err
    assert file.read_text() == edited
    assert call("build", "--variant", "v8", "--out", "own", "--force").code == 0
    assert file.read_text() != edited


def test_everything_that_is_named_is_built_once(
    call: Call, edited: Callable[..., Path], nvcc: None
) -> None:
    own = edited("v8", "// variant", "// edited\n// variant").name
    built = call("build", "v8", own, "t1", "v8:threads=256", "--variant", "cpu", "--variant", own)
    assert built.code == 0
    said, _, table = built.out.partition(" kernel ")
    assert said.splitlines() == [
        "wrote generated/softmax_v8.cu",
        f"read {own}",
        "wrote generated/softmax_t1.cu",
        "wrote generated/softmax_cpu.cpp",
    ]
    first_words = [line.split(" sm_90")[0].strip() for line in table.splitlines()[1:]]
    t1 = [f"softmax_t1_{phase}" for phase in ("max", "sum", "write")]
    assert first_words == ["softmax_v8 of generated/softmax_v8.cu", f"softmax_v8 of {own}", *t1]


def test_several_as_json(call: Call, no_nvcc: None) -> None:
    built = call("build", "v3", "v7", "--items", 2, "--json").json
    assert [entry["file"] for entry in built] == [
        f"generated/softmax_{version}_items2.cu" for version in ("v3", "v7")
    ]


def test_shared_bytes_of_both_kinds_are_told(call: Call, nvcc: None) -> None:
    built = call("build", "v5:cache=shared", "--cols", 1000)
    head, row = built.out.splitlines()[1:]
    values = dict(
        zip(
            head.replace("c shared", "c_shared").replace("spill ", "spill_").split(),
            row.split(),
            strict=False,
        )
    )
    assert (values["static_shared"], values["dynamic_shared"]) == ("64", "4000")


@pytest.mark.parametrize(
    "empty", [["build", ""], ["build", "v7", "--arch", ""], ["sass", " "], ["diff", "", "v6"]]
)
def test_empty_words_are_told(call: Call, nvcc: None, empty: list[str]) -> None:
    refused = call(*empty)
    assert refused.code == 2 and refused.err.count("\n") == 1


def test_two_of_one_name_are_refused(call: Call, edited: Callable[..., Path]) -> None:
    own = edited("v8", "// variant", "// edited\n// variant")
    other = own.parent / "more" / own.name
    other.parent.mkdir()
    other.write_text(own.read_text() + "// more\n")
    assert call("build", own, other).code == 0
    refused = call("build", own, other, "--out", "out")
    assert refused.code == 2
    assert refused.err == (
        f"kgen: two of {own}, {other} would be out/{own.name}; build them one by one\n"
    )
    assert not Path("out").exists()


def test_an_edited_file_is_written_where_it_shall_be(
    call: Call, edited: Callable[..., Path]
) -> None:
    own = edited("v8", "// variant", "// edited\n// variant")
    built = call("build", own, "--out", "out")
    assert built.code == 0 and built.out.startswith(f"wrote out/{own.name}\n")
    assert Path("out", own.name).read_text() == own.read_text()
    assert not Path("generated").exists()


def test_an_edited_file_is_compiled_where_it_is(call: Call) -> None:
    call("build", "--variant", "v8", "--out", "own")
    built = call("build", "--variant", "own/softmax_v8.cu")
    assert built.code == 0 and built.out.startswith("read own/softmax_v8.cu\n")
    assert not Path("generated").exists()


def test_version_and_machine_code(call: Call) -> None:
    assert call("--version").out == "kgen 0.1.0\n"
    shown = call("sass", "v8")
    if shown.code == 3:
        pytest.skip(shown.err)
    assert "SHFL" in shown.out and "softmax_v8" in shown.out
