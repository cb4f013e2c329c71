"""Compiling: the cache, what a compiler's refusal says, which compiler is used."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kgen import cpu
from kgen.cache import Entry, made_file
from kgen.cpu.build import build
from kgen.cpu.compiler import LINK_FLAGS, RUNTIME_DIR, Cxx, call_cxx, describe_cxx
from kgen.cpu.unit import wrapper_text
from kgen.errors import CompileFailed, MissingTool
from kgen.sources.source import Source

RunKernel = Callable[..., NDArray[np.float32]]
MakeSource = Callable[..., Source]

EMPTY = 'extern "C" __global__ void k() {}\n'
KERNEL = 'extern "C" __global__ void k(float* y) { %s }\n'


def write(text: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(text, encoding="utf-8") and None


def never(path: Path) -> None:
    raise AssertionError(f"{path} is built again")


def test_a_file_is_made_once(tmp_path: Path) -> None:
    entry = Entry(tmp_path / "new", "entry", "key")
    assert made_file(entry, write("content")).read_bytes() == b"content"
    made_file(entry, never)
    assert sorted(entry.folder.iterdir()) == [entry.path, entry.record]
    again: list[str] = []
    made_file(
        Entry(entry.folder, "entry", "another key"),
        lambda path: again.append(path.name) or write("x")(path),
    )
    assert again == ["entry"]


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b"", lambda b: b"X" + b[1:]])
@pytest.mark.parametrize("which", ["path", "record"])
def test_a_damaged_entry_is_made_again(
    tmp_path: Path, which: str, damage: Callable[[bytes], bytes]
) -> None:
    entry = Entry(tmp_path, "entry", "key")
    made_file(entry, write("content"))
    damaged: Path = getattr(entry, which)
    whole = damaged.read_bytes()
    damaged.write_bytes(damage(whole))
    made_file(entry, write("content"))
    assert damaged.read_bytes() == whole


def test_failed_build_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        made_file(Entry(tmp_path, "entry", "key"), never)
    assert list(tmp_path.iterdir()) == []


def test_concurrent_builds_all_succeed(tmp_path: Path) -> None:
    meet = threading.Barrier(4)
    entry = Entry(tmp_path, "entry", "key")

    def build_slowly(path: Path) -> None:
        meet.wait()
        write("content")(path)

    threads = [threading.Thread(target=made_file, args=(entry, build_slowly)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made_file(entry, never)


@pytest.mark.parametrize("folder", ["file", "file/below", "/proc/kgen"])
def test_unwritable_cache_is_the_users_to_solve(
    make_source: MakeSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("KGEN_CACHE_DIR", str(tmp_path / folder))
    with pytest.raises(MissingTool, match="set KGEN_CACHE_DIR to one that can"):
        build(make_source(EMPTY, "k"))


def test_truncated_executable_is_rebuilt_and_runs(
    run_kernel: RunKernel, make_source: MakeSource
) -> None:
    text = KERNEL % "y[0] = 41;  /* nobody else runs this text while it is damaged */"
    executable = build(make_source(text, "k"))
    executable.write_bytes(executable.read_bytes()[:5000])
    x = np.zeros((1, 1), np.float32)
    assert run_kernel(text, x, block=1, args=("y",)) == 41


def test_compile_error_names_the_users_file_and_line(
    make_source: MakeSource, tmp_path: Path
) -> None:
    path = tmp_path / "kernel.cu"
    with pytest.raises(CompileFailed) as caught:
        build(make_source(KERNEL % "int i = nonsense;", "k", path=path))
    assert f"\n{path}:5:" in str(caught.value)
    assert "CPU executor does not know" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "name", "header"),
    [
        ("y[0] = __frsqrt_rn(y[0]);", "__frsqrt_rn", "cuda_math.h"),
        ("__syncthreads_count(1);", "__syncthreads_count", "cuda_sync.h"),
        ("atomicOr((int*)y, 1);", "atomicOr", "cuda_memory.h"),
    ],
)
def test_unknown_intrinsic_says_where_to_add_it(
    make_source: MakeSource, call: str, name: str, header: str
) -> None:
    with pytest.raises(CompileFailed) as caught:
        build(make_source(KERNEL % call, "k"))
    assert f"does not know {name}: if it is CUDA's, add it to {RUNTIME_DIR / header}" in str(
        caught.value
    )
    assert (RUNTIME_DIR / header).is_file()


def test_unknown_intrinsic_in_a_template(make_source: MakeSource) -> None:
    text = "template <class T> __device__ T f() { return __clock(); }\n" + EMPTY
    with pytest.raises(CompileFailed, match="does not know __clock"):
        build(make_source(text, "k"))


def test_cxx_is_honoured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "my-c++"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("CXX", str(program))
    assert cpu.find_cxx() == Cxx((str(program),))
    for wrong in ("no-such-c++", "'no-such-c++", "''"):
        monkeypatch.setenv("CXX", wrong)
        with pytest.raises(MissingTool, match=f"CXX names {re.escape(wrong)}, which is not a prog"):
            cpu.find_cxx()


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where the user is, with a compiler and a launcher that passes on its arguments."""
    folder = tmp_path / "my tools"
    folder.mkdir()
    (folder / "g++").symlink_to(str(shutil.which("g++")))
    (folder / "launch").write_text('#!/bin/sh\nexec "$@"\n')
    (folder / "launch").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


@pytest.mark.parametrize(
    "named",
    ["my tools/g++", "~/my tools/g++", "'my tools/launch' 'my tools/g++' -DX", "gcc", "gcc -O1"],
)
def test_ways_to_name_the_compiler(
    tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """A relative program, one by its home folder, a launcher in front, and the C driver."""
    if not shutil.which("gcc"):
        pytest.skip("there is no GCC here")
    monkeypatch.setenv("CXX", named)
    (tmp_path / "a.cpp").write_text("#include <vector>\nint main() { std::vector<int> v(9); }")
    cxx = cpu.find_cxx()
    assert "Free Software" in describe_cxx(cxx)
    assert call_cxx(cxx, ["a.cpp", *LINK_FLAGS, "-o", "a"], tmp_path) == ""
    assert subprocess.run([tmp_path / "a"]).returncode == 0


def test_the_compilers_name_in_messages(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "'my tools/launch' 'my tools/g++' -m64")
    cxx = cpu.find_cxx()
    assert cxx.name == "launch g++ -m64"
    assert str(cxx) == f"'{tools}/launch' '{tools}/g++' -m64"


def test_a_program_that_compiles_nothing(
    make_source: MakeSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "g++"
    program.write_text("#!/bin/sh\necho GCC\n")
    program.chmod(0o755)
    monkeypatch.setenv("CXX", str(program))
    with pytest.raises(MissingTool, match=r"wrote no runtime-.*: set CXX to g\+\+ or clang"):
        build(make_source(EMPTY, "k"))


def test_no_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingTool, match="install g\\+\\+ or clang\\+\\+, or set CXX"):
        cpu.find_cxx()


def test_wrapper_includes_the_source_and_lists_its_kernels(make_source: MakeSource) -> None:
    source = make_source(EMPTY, "k", "l", stem="two")
    wrapper = wrapper_text(source)
    assert '#include "two.cu"' in wrapper
    assert "KGEN_CPU_KERNEL(k)" in wrapper and "KGEN_CPU_KERNEL(l)" in wrapper
