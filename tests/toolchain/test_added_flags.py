"""Flags that a user's environment adds to nvcc's: which pass, and which are against kgen's own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kgen.errors import UsageError
from kgen.sources.source import Source
from kgen.toolchain import CompileOptions, compile_cubin
from kgen.toolchain.added_flags import VARIABLES, added_flags, require_no_contradiction

OURS = ("-cubin", "-arch=sm_90", "-Xptxas", "-v", *CompileOptions(maxrregcount=64).flags())


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ("-arch=sm_80", "-arch sm_80"),
        ("-lineinfo -arch sm_80", "-arch sm_80"),
        ("--gpu-architecture=sm_80", "-gpu-architecture sm_80"),
        ("-gencode arch=compute_80,code=sm_80", "-gencode arch=compute_80,code=sm_80"),
        ("-maxrregcount=32", "-maxrregcount 32"),
        ("-O0", "-O 0"),
        ("-O 1", "-O 1"),
        ("-Xptxas -O0", "-O 0"),
        ("-Xptxas=-v,-O1", "-O 1"),
        ("-G", "-G"),
        ("-w -use_fast_math", "-use_fast_math"),
        ("--ftz=true", "-ftz true"),
        ("-ptx", "-ptx"),
        ("-rdc=true", "-rdc true"),
        ("-o mine.cubin", "-o mine.cubin"),
        ("-optf flags.txt", "-optf flags.txt"),
    ],
)
def test_what_decides_other_than_kgen_is_refused(
    monkeypatch: pytest.MonkeyPatch, variable: str, flags: str, told: str
) -> None:
    monkeypatch.setenv(variable, flags)
    with pytest.raises(UsageError) as refused:
        require_no_contradiction(OURS)
    assert str(refused.value).startswith(f"{variable} has {told}, against what kgen asks")


@pytest.mark.parametrize(
    "flags",
    [
        "",
        "-lineinfo -DSIZE=3 -D NAME=-O0 -I /some/where -I. -w -Xptxas -v --threads 2",
        "-Xcompiler -O2 -Xcompiler=-G -std=c++20",
        "-arch=sm_90 -arch sm_90 -O3 --maxrregcount=64 -cubin",
    ],
)
def test_what_does_no_harm_or_says_the_same_passes(
    monkeypatch: pytest.MonkeyPatch, flags: str
) -> None:
    monkeypatch.setenv("NVCC_APPEND_FLAGS", flags)
    require_no_contradiction(OURS)


def test_added_flags_in_the_order_of_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-DB  -lineinfo")
    monkeypatch.setenv("NVCC_PREPEND_FLAGS", "-DA")
    assert added_flags() == ("-DA", "-DB", "-lineinfo")


def test_a_refusal_comes_before_the_cache(
    nvcc: None, make_source: Callable[..., Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make_source('extern "C" __global__ void k() {}', "k")
    compile_cubin(source, "sm_90")
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-arch=sm_80")
    with pytest.raises(UsageError, match="NVCC_APPEND_FLAGS has -arch sm_80"):
        compile_cubin(source, "sm_90")
