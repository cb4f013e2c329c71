"""What a failing compiler says of the machine, and what of the source."""

from __future__ import annotations

from pathlib import Path
from signal import SIGKILL, SIGSEGV

import pytest

from kgen.cpu.compiler import Cxx, call_cxx
from kgen.errors import CompileFailed, MachineTrouble
from kgen.machine_trouble import require_no_trouble
from kgen.toolchain.nvcc import Compilation, run_nvcc


@pytest.mark.parametrize(
    "messages",
    [
        "k.ptx: error\nptxas fatal : write: No space left on device",
        "<built-in>: fatal error: when writing output to /tmp/x.ii: Inappropriate ioctl for device",
        "cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes",
        "g++: fatal error: Killed signal terminated program cc1plus",
        "g++: internal compiler error: File size limit exceeded signal terminated program as",
        "nvcc error   : 'cicc' died due to signal 9 (Kill signal)",
    ],
)
def test_the_machines_fault_is_told_in_its_words(messages: str) -> None:
    line = messages.splitlines()[-1]
    with pytest.raises(MachineTrouble) as raised:
        require_no_trouble("nvcc", 1, messages)
    assert str(raised.value).startswith(f"nvcc could not finish ({line}): free memory")


def test_a_killed_compiler_rejects_nothing() -> None:
    with pytest.raises(MachineTrouble, match=r"g\+\+ could not finish \(SIGKILL\)"):
        require_no_trouble("g++", -SIGKILL, "")


@pytest.mark.parametrize(
    ("code", "messages"),
    [
        (1, "k.cu:3: error: 'exqf' was not declared"),
        (1, "g++: internal compiler error: Segmentation fault signal terminated program cc1plus"),
        (1, "nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)"),
        (-SIGSEGV, ""),
    ],
)
def test_a_sources_fault_is_its_own(code: int, messages: str) -> None:
    require_no_trouble("nvcc", code, messages)


@pytest.mark.parametrize(
    ("script", "error", "words"),
    [
        ("echo No space left on device; exit 1", MachineTrouble, "nvcc could not finish"),
        ("kill -9 $$", MachineTrouble, r"nvcc could not finish \(SIGKILL\)"),
        ("printf '\\177ELF' > \"$1\"", MachineTrouble, "nvcc wrote a part of k.cu's cubin"),
        ("echo no; exit 1", CompileFailed, "nvcc rejected k.cu"),
    ],
)
def test_nvcc_is_asked(script: str, error: type[Exception], words: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=words):
        run_nvcc(
            Compilation(None, "sm_90", ("sh", "-c", script), None), tmp_path / "k.cu", "k.cu", 10
        )


def test_a_cxx_compiler_is_asked(tmp_path: Path) -> None:
    shell = Cxx(("/bin/sh",))
    with pytest.raises(MachineTrouble, match="sh could not finish"):
        call_cxx(shell, ["-c", "echo No space left on device >&2; exit 1"], tmp_path)
    assert call_cxx(shell, ["-c", "echo no >&2; exit 1"], tmp_path) == "no\n"
