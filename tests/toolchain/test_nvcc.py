"""Compiling with the real nvcc: resources, warnings, refusals, options, headers."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kgen.errors import CompileFailed, MissingTool, UsageError
from kgen.sources.source import Source
from kgen.toolchain import Binary, CompileOptions, compile_cubin, compile_many, find_nvcc
from kgen.toolchain.headers import headers_of, with_users_names

pytestmark = pytest.mark.slow

MakeSource = Callable[..., Source]

KERNELS = """
extern "C" __global__ void shared_k(float* y) {
  __shared__ float s[68];
  s[threadIdx.x % 68] = y[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[(threadIdx.x + 1) % 68];
}
extern "C" __global__ void stacky(const float* x, float* y, int n) {
  float a[4];
  for (int i = 0; i < n; ++i) a[i] = x[i];
  y[threadIdx.x] = a[n & 3];
}
extern "C" __global__ void wide(const float* x, float* y) {
  float a[100], s = 0;
  #pragma unroll
  for (int i = 0; i < 100; ++i) s += a[i] = x[i * 256 + threadIdx.x];
  #pragma unroll
  for (int i = 0; i < 100; ++i) y[i * 256 + threadIdx.x] = __expf(a[i]) / s;
}
"""
EMPTY = 'extern "C" __global__ void k() {}\n'


def test_resources_in_the_order_of_the_source(nvcc: None, make_source: MakeSource) -> None:
    binary = compile_cubin(make_source(KERNELS, "stacky", "shared_k", "wide"), "sm_75")
    stacky, shared, wide = binary.kernels
    assert [kernel.kernel for kernel in binary.kernels] == ["stacky", "shared_k", "wide"]
    assert (stacky.stack_bytes, stacky.spill_store_bytes) == (16, 0)
    assert (shared.static_shared_bytes, shared.stack_bytes) == (272, 0)
    assert wide.registers > 100 and wide.spill_store_bytes == 0
    assert binary.image.startswith(b"\x7fELF") and binary.path.read_bytes() == binary.image
    assert (binary.arch, binary.log) == ("sm_75", "")


def test_register_limit_makes_a_wide_kernel_spill(nvcc: None, make_source: MakeSource) -> None:
    options = CompileOptions(maxrregcount=32)
    wide = compile_cubin(make_source(KERNELS, "wide"), "sm_90", options).kernels[0]
    assert wide.registers <= 32 and wide.stack_bytes > 0
    assert wide.spill_store_bytes > 0 and wide.spill_load_bytes > 0


def test_options_change_the_code(nvcc: None, make_source: MakeSource) -> None:
    source = make_source(KERNELS, "wide", stem="wide_rows")
    plain = compile_cubin(source, "sm_90")
    fast = compile_cubin(source, "sm_90", CompileOptions(use_fast_math=True))
    lines = compile_cubin(source, "sm_90", CompileOptions(lineinfo=True))
    assert fast.image != plain.image
    assert b"wide_rows.cu" in lines.image and b"wide_rows.cu" not in plain.image
    assert (lines.path.parent / "wide_rows.cu").read_text() == source.text


def test_warnings_are_kept_with_the_binary(nvcc: None, make_source: MakeSource) -> None:
    source = make_source('extern "C" __global__ void k() { int unused; }', "k")
    for binary in (compile_cubin(source, "sm_90"), compile_cubin(source, "sm_90")):
        assert binary.log.startswith('kernel.cu(1): warning #177-D: variable "unused"')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('extern "C" __global__ void k() {\n  oops;\n}', r'(2): error: identifier "oops"'),
        ('#include "absent.h"\n', r":1:10: fatal error: absent.h: No such file"),
        (
            'extern "C" __global__ void k(float* y) {\n  __shared__ float s[20000];\n'
            "  s[threadIdx.x] = *y; __syncthreads(); *y = s[*(int*)y];\n}",
            "Entry function 'k' uses too much shared data",
        ),
    ],
)
def test_rejected_source(
    nvcc: None, make_source: MakeSource, cache: Path, text: str, words: str
) -> None:
    for path, name in ((None, "kernel.cu"), (Path("some where/mine.cu"), "some where/mine.cu")):
        with pytest.raises(CompileFailed) as failure:
            compile_cubin(make_source(text, "k", path=path), "sm_90")
        message = str(failure.value)
        assert message.startswith(f"nvcc rejected {name}:\n")
        assert (name + words if words[0] in "(:" else words) in message
        assert str(cache) not in message


def test_kernel_without_c_linkage_is_named(nvcc: None, make_source: MakeSource) -> None:
    with pytest.raises(CompileFailed, match=r'no extern "C" kernel k; it defines _Z1kPf'):
        compile_cubin(make_source("__global__ void k(float* y) {}", "k"), "sm_90")


@pytest.mark.parametrize("arch", ["sm_12", "banana", "90", "sm_90 -O0"])
def test_unknown_arch_lists_the_known(nvcc: None, make_source: MakeSource, arch: str) -> None:
    with pytest.raises(UsageError, match=rf"'{arch}'; choose one of sm_75, .*sm_90, sm_100"):
        compile_cubin(make_source(EMPTY, "k"), arch)


def test_host_source_is_refused(nvcc: None, make_source: MakeSource) -> None:
    host: Any = SimpleNamespace(is_host=True)
    source = dataclasses.replace(make_source("int main() {}"), spec=host)
    with pytest.raises(UsageError, match=r"kernel\.cpp is plain C\+\+ for the host"):
        compile_cubin(source, "sm_90")


SIZED = '#include "sub/a.h"\nextern "C" __global__ void k(float* y) { *y = SIZE; }\n'


@pytest.mark.parametrize("name", ["plain", "a, b 'c' \\d $e:f #g ü"])
def test_header_beside_the_users_file(
    nvcc: None,
    make_source: MakeSource,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """Names of any kind: of the user's folder, the cache's and the one for temporary files."""
    monkeypatch.setenv("KGEN_CACHE_DIR", str(tmp_path / f"{name} cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / name))
    (tmp_path / name / "sub").mkdir(parents=True)
    (tmp_path / name / "sub" / "a.h").write_text('#include "my #,size.h"\n')
    source = make_source(SIZED, "k", path=tmp_path / name / "k.cu")
    images = []
    for size in ("3", "4", "4"):
        (tmp_path / name / "my #,size.h").write_text(f"#define SIZE {size}\n")
        images.append(compile_cubin(source, "sm_90", CompileOptions(lineinfo=True)))
    assert images[0].image != images[1].image and images[1] == images[2]
    (tmp_path / name / "sub" / "a.h").write_text("#define SIZE oops\n")
    with pytest.raises(CompileFailed, match=re.escape(f"{name}/k.cu(2): error: identifier")):
        compile_cubin(source, "sm_90")


def test_quotes_in_folders(
    nvcc: None, make_source: MakeSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two kinds: with lines, nvcc writes PTX that it cannot read."""
    monkeypatch.setenv("KGEN_CACHE_DIR", str(tmp_path / 'a"b'))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    source = make_source(EMPTY, "k", path=tmp_path / 'c"d' / "k.cu")
    assert compile_cubin(source, "sm_90").log == ""
    with pytest.raises(MissingTool, match="quote in it: set KGEN_CACHE_DIR to another place"):
        compile_cubin(source, "sm_90", CompileOptions(lineinfo=True))


@pytest.mark.parametrize("variable", ["CPATH", "CPLUS_INCLUDE_PATH"])
def test_header_of_a_search_path(
    nvcc: None,
    make_source: MakeSource,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, "elsewhere")
    header = tmp_path / "elsewhere" / "sub" / "a.h"
    header.parent.mkdir(parents=True)
    images = set()
    for size in (3, 4):
        header.write_text(f"#define SIZE {size}\n")
        images.add(compile_cubin(make_source(SIZED, "k"), "sm_90").image)
    assert len(images) == 2


def test_names_in_a_rule_for_make(tmp_path: Path) -> None:
    rule = "cubin : k.cu \\\n    neighbours/a\\ b\\#,c.h /x/\\d$$e.h \\\n  /f\\:g.h\n"
    assert headers_of(rule, tmp_path / "k.cu") == [
        f"{tmp_path}/neighbours/a b#,c.h",
        "/x/\\d$e.h",
        "/f:g.h",
    ]


def test_names_in_messages() -> None:
    said = "k.cu(2): error\nneighbours/sub/a.h:1:10: error\n./k.cu(3)\nk.cut /b/k.cu\n"
    for name, folder in (("k2.cu", ""), ("my/k2.cu", "my/"), ("/my/k2.cu", "/my/")):
        assert with_users_names(said, Path("/b/k.cu"), name) == (
            f"{name}(2): error\n{folder}sub/a.h:1:10: error\n{name}(3)\nk.cut /b/k.cu\n"
        )


def test_no_host_compiler_is_not_the_sources_fault(
    nvcc: None, make_source: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVCC_CCBIN", "/no/such/folder/g++")
    with pytest.raises(MissingTool, match=r"no C\+\+ compiler that works .*NVCC_CCBIN"):
        compile_cubin(make_source(EMPTY, "k"), "sm_90")


def test_host_compiler_by_a_relative_path(
    nvcc: None, make_source: MakeSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "g++").symlink_to(str(shutil.which("g++")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NVCC_CCBIN", "tools/g++")
    assert compile_cubin(make_source(EMPTY, "k"), "sm_90").log == ""


def test_flags_that_keep_nvcc_from_compiling(
    nvcc: None, make_source: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "--dryrun")
    with pytest.raises(CompileFailed, match=r"wrote no cubin for kernel\.cu.*NVCC_APPEND_FLAGS"):
        compile_cubin(make_source(EMPTY, "k"), "sm_90")


def test_an_nvcc_that_compiles_for_something_else(
    nvcc: None,
    make_source: MakeSource,
    make_program: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = f'#!/bin/sh\nexec {find_nvcc().path} $(echo "$@" | sed s/sm_90/sm_80/)\n'
    monkeypatch.setenv("KGEN_NVCC", str(make_program("tools/nvcc", script)))
    sources = [make_source(EMPTY, "k"), make_source(EMPTY.replace("k()", "l()"), "l")]
    with pytest.raises(UsageError, match=r"kernel\.cu for sm_80, though sm_90 was asked for"):
        compile_cubin(sources[0], "sm_90")
    with pytest.raises(UsageError, match="for sm_80, though sm_90 was asked for"):
        compile_many(sources, "sm_90")


def test_many_keep_their_order_and_failures_apart(nvcc: None, make_source: MakeSource) -> None:
    texts = [EMPTY.replace("k()", name + "()") for name in "abc"]
    texts[1] = "oops"
    sources = [make_source(text, name) for text, name in zip(texts, "abc", strict=True)]
    first, second, third = compile_many(sources, "sm_90")
    assert isinstance(first, Binary) and first.kernels[0].kernel == "a"
    assert isinstance(second, CompileFailed) and "oops" in str(second)
    assert isinstance(third, Binary) and third.kernels[0].kernel == "c"


def test_many_raise_what_concerns_all(nvcc: None, make_source: MakeSource) -> None:
    with pytest.raises(UsageError, match="banana"):
        compile_many([make_source(EMPTY, "k")], "banana")
