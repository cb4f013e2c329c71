"""Disassembly per kernel: a recorded answer of nvdisasm, and the real one where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kgen.errors import MissingTool
from kgen.sources.source import Source
from kgen.toolchain import (
    Binary,
    KernelResources,
    compile_cubin,
    find_disassembler,
    sass,
    sass_by_kernel,
)

RECORDED = """\
\t.target\tsm_90

\t.elftype\t@"ET_EXEC"


//--------------------- .text.first               --------------------------
\t.section\t.text.first,"ax",@progbits
\t.align\t128
        .global         first
        .type           first,@function
first:
.text.first:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   EXIT ;
.L_x_0:
        /*0020*/                   BRA `(.L_x_0);
.L_x_20:


//--------------------- .text.second              --------------------------
\t.section\t.text.second,"ax",@progbits
second:
.text.second:
        /*0000*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
.L_x_21:


//--------------------- SYMBOLS --------------------------
\t.type\t.nv.reservedSmem.offset0,@STT_CUDA_OBJECT
"""
FIRST = """\
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   EXIT ;
.L_x_0:
        /*0020*/                   BRA `(.L_x_0);
.L_x_1:"""
SECOND = """\
        /*0000*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
.L_x_0:"""


def _binary() -> Binary:
    kernels = tuple(KernelResources(name, 8, 0, 0, 0, 0) for name in ("second", "first"))
    return Binary(Path("unused.cubin"), b"image", "sm_90", kernels, "")


@pytest.fixture
def use_nvdisasm(
    make_program: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], None]:
    """Make kgen use a stand-in for nvdisasm that answers with the given commands."""

    def use(commands: str) -> None:
        script = f'#!/bin/sh\n[ "$1" = --version ] && echo V12.0.1 && exit\n{commands}\n'
        monkeypatch.setenv("KGEN_NVDISASM", str(make_program("nvdisasm", script)))

    return use


def test_code_is_split_by_kernel(use_nvdisasm: Callable[[str], None]) -> None:
    use_nvdisasm(f"[ $(cat $2) = image ] && cat <<'END'\n{RECORDED}END")
    assert sass_by_kernel(_binary()) == {"second": SECOND, "first": FIRST}


def test_text_names_every_kernel_in_order(use_nvdisasm: Callable[[str], None]) -> None:
    use_nvdisasm(f"cat <<'END'\n{RECORDED}END")
    assert sass(_binary()) == f"Function : second\n{SECOND}\n\nFunction : first\n{FIRST}\n"


def test_code_at_the_end_of_the_answer(use_nvdisasm: Callable[[str], None]) -> None:
    """Nothing follows the last kernel's code for sm_75."""
    shortened = "".join(RECORDED.partition(".L_x_21:")[:2])
    use_nvdisasm(f"cat <<'END'\n{shortened}\nEND")
    assert sass_by_kernel(_binary()) == {"second": SECOND, "first": FIRST}


def test_disassembler_too_old_for_the_binary(use_nvdisasm: Callable[[str], None]) -> None:
    use_nvdisasm("echo 'nvdisasm fatal: unsupported sm_90' >&2; exit 1")
    with pytest.raises(MissingTool, match=r"nvdisasm 12\.0\.1 .* sm_90 .*unsupported"):
        sass(_binary())


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_real_disassembly(nvcc: None, make_source: Callable[..., Source], arch: str) -> None:
    try:
        find_disassembler()
    except MissingTool as missing:
        pytest.skip(str(missing))
    text = """
    extern "C" __global__ void copies(const float4* x, float4* y) {
      y[threadIdx.x] = x[threadIdx.x];
    }
    extern "C" __global__ void meets() { __syncthreads(); }
    """
    code = sass_by_kernel(compile_cubin(make_source(text, "copies", "meets"), arch))
    assert list(code) == ["copies", "meets"]
    assert "LDG.E.128" in code["copies"] and "STG.E.128" in code["copies"]
    assert "BAR.SYNC" in code["meets"] and "LDG" not in code["meets"]
