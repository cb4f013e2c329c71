"""The cache of binaries: what its key covers, what it does not trust, many processes at once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kgen.errors import MissingTool
from kgen.sources.source import Source
from kgen.toolchain import CompileOptions, compile_cubin, compile_many, find

MakeSource = Callable[..., Source]
FakeNvcc = Callable[..., Path]

ONE_PROCESS = """
import sys
from types import SimpleNamespace
from kgen.sources.source import Source
from kgen.toolchain import compile_cubin
source = Source(SimpleNamespace(is_host=False, requires=""), "kernel", sys.argv[1], ("k",))
for _ in range(20):
    binary = compile_cubin(source, "sm_90")
    assert len(binary.image) == 20000
    binary.path.write_bytes(b"damaged")
"""


def _runs(folder: Path) -> int:
    return len((folder / "runs").read_text().splitlines())


def test_second_request_is_answered_from_the_cache(
    fake_nvcc: FakeNvcc, make_source: MakeSource
) -> None:
    folder = fake_nvcc("tools")
    source = make_source("text", "k")
    assert compile_cubin(source, "sm_90") == compile_cubin(source, "sm_90")
    assert _runs(folder) == 1


def test_key_covers_all_that_goes_in(
    fake_nvcc: FakeNvcc, make_source: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fake_nvcc("tools")
    requests = [
        (make_source("text", "k"), "sm_90", CompileOptions()),
        (make_source("other text", "k"), "sm_90", CompileOptions()),
        (make_source("text", "k", stem="other"), "sm_90", CompileOptions()),
        (make_source("text", "k", path=Path("mine.cu")), "sm_90", CompileOptions()),
        (make_source("text", "k"), "sm_75", CompileOptions()),
        (make_source("text", "k"), "sm_90", CompileOptions(maxrregcount=32)),
        (make_source("text", "k"), "sm_90", CompileOptions(use_fast_math=True)),
        (make_source("text", "k"), "sm_90", CompileOptions(lineinfo=True)),
    ]
    images = {compile_cubin(*request).image for request in requests}
    images |= {compile_cubin(*request).image for request in requests}
    assert _runs(folder) == len(images) == len(requests)
    variables = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "CPATH")
    for number, variable in enumerate((*variables, "CPLUS_INCLUDE_PATH"), start=1):
        monkeypatch.setenv(variable, "-DX")
        compile_cubin(*requests[0])
        assert _runs(folder) == len(requests) + number, variable


def test_another_compiler_compiles_again(fake_nvcc: FakeNvcc, make_source: MakeSource) -> None:
    """Another place counts as another compiler, and so does another version in the same place."""
    source = make_source("text", "k")
    images = set()
    for place, version in (("a", "13.0.88"), ("b", "13.0.88"), ("b", "13.1.80")):
        fake_nvcc(place, version)
        find._banner.cache_clear()
        images.add(compile_cubin(source, "sm_90").image)
    assert len(images) == 3


@pytest.mark.parametrize("name", ["kernel.cubin", "kernel.cubin.json"])
@pytest.mark.parametrize("damage", ["truncated", "empty", "absent", "altered"])
def test_damaged_entry_is_compiled_again(
    fake_nvcc: FakeNvcc, make_source: MakeSource, name: str, damage: str
) -> None:
    folder = fake_nvcc("tools")
    source = make_source("text", "k")
    path = compile_cubin(source, "sm_90").path.parent / name
    content = path.read_bytes()
    if damage == "absent":
        path.unlink()
    else:
        altered = (
            content.replace(b": 10,", b": 11,") if name == "kernel.cubin.json" else content[::-1]
        )
        path.write_bytes({"truncated": content[:-7], "empty": b"", "altered": altered}[damage])
        assert path.read_bytes() != content
    repaired = compile_cubin(source, "sm_90")
    assert _runs(folder) == 2 and repaired.kernels[0].registers == 10
    assert compile_cubin(source, "sm_90") == repaired


@pytest.mark.parametrize("foreign", ["null", "[]", "{}", '{"facts": 1, "file": 3, "digest": 2}'])
def test_file_of_another_program_is_compiled_over(
    fake_nvcc: FakeNvcc, make_source: MakeSource, foreign: str
) -> None:
    folder = fake_nvcc("tools")
    source = make_source("text", "k")
    (compile_cubin(source, "sm_90").path.parent / "kernel.cubin.json").write_text(foreign)
    compile_cubin(source, "sm_90")
    assert _runs(folder) == 2


def test_entry_of_another_source_is_not_taken(fake_nvcc: FakeNvcc, make_source: MakeSource) -> None:
    """A whole entry, valid in its own place, is worth nothing in another's."""
    folder = fake_nvcc("tools")
    here, there = (make_source(text, "k") for text in ("here", "there"))
    place, other = (compile_cubin(source, "sm_90").path.parent for source in (here, there))
    for name in ("kernel.cubin", "kernel.cubin.json"):
        (place / name).write_bytes((other / name).read_bytes())
    assert compile_cubin(here, "sm_90").image != compile_cubin(there, "sm_90").image
    assert _runs(folder) == 3


def test_changed_or_lost_header_compiles_again(
    fake_nvcc: FakeNvcc, make_source: MakeSource, tmp_path: Path
) -> None:
    folder = fake_nvcc("tools")
    header = tmp_path / "a header.h"
    (folder / "headers").write_text(str(header).replace(" ", "\\ ") + "\n")
    source = make_source("text", "k")
    for runs, text in ((1, "one"), (1, "one"), (2, "two"), (3, "one")):
        header.write_text(text)
        entry = compile_cubin(source, "sm_90").path.parent / "kernel.cubin.json"
        assert _runs(folder) == runs
    assert json.loads(entry.read_text())["facts"]["headers"] == [str(header)]
    header.unlink()
    (folder / "headers").unlink()
    compile_cubin(source, "sm_90")
    assert _runs(folder) == 4


def test_eight_processes_at_once(fake_nvcc: FakeNvcc, make_source: MakeSource, cache: Path) -> None:
    """Processes that write and damage one entry never see a binary that is not whole."""
    fake_nvcc("tools")
    command = [sys.executable, "-c", ONE_PROCESS, "text"]
    processes = [subprocess.Popen(command) for _ in range(8)]
    assert [process.wait() for process in processes] == [0] * 8
    binary = compile_cubin(make_source("text", "k"), "sm_90")
    names = sorted(path.name for path in binary.path.parent.iterdir())
    assert names == ["kernel.cu", "kernel.cubin", "kernel.cubin.json"]


def test_replaced_binary_stays_whole_for_who_reads_it(
    fake_nvcc: FakeNvcc, make_source: MakeSource
) -> None:
    fake_nvcc("tools")
    source = make_source("text", "k")
    first = compile_cubin(source, "sm_90")
    with first.path.open("rb") as reader:
        (first.path.parent / "kernel.cubin.json").unlink()
        assert compile_cubin(source, "sm_90").image != first.image
        assert reader.read() == first.image


def test_cache_that_cannot_be_written(
    fake_nvcc: FakeNvcc, make_source: MakeSource, cache: Path
) -> None:
    fake_nvcc("tools")
    cache.write_text("a file where the folder should be")
    for compile_it in (compile_cubin, lambda source, arch: compile_many([source] * 2, arch)):
        with pytest.raises(MissingTool, match=r"cannot be written .*KGEN_CACHE_DIR"):
            compile_it(make_source("text", "k"), "sm_90")


@pytest.mark.parametrize("folder", ["~/kept", "kept"])
def test_cache_in_the_home_folder_and_in_a_relative_one(
    fake_nvcc: FakeNvcc,
    make_source: MakeSource,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
) -> None:
    fake_nvcc("tools")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KGEN_CACHE_DIR", folder)
    path = compile_cubin(make_source("text", "k"), "sm_90").path
    assert path.is_relative_to(tmp_path / "kept")


@pytest.mark.parametrize("folder", ["absent", "file", "/proc"])
def test_no_folder_for_temporary_files(
    fake_nvcc: FakeNvcc,
    make_source: MakeSource,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
) -> None:
    fake_nvcc("tools")
    (tmp_path / "file").touch()
    monkeypatch.setenv("TMPDIR", str(tmp_path / folder))
    with pytest.raises(MissingTool, match=rf"in {tmp_path / folder} \(.*: set TMPDIR to a folder"):
        compile_cubin(make_source("text", "k"), "sm_90")
