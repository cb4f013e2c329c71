"""Sources, an empty cache for every test, and stand-ins for the CUDA programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kgen.sources.source import Source

FAKE_NVCC = """#!/bin/sh
# Stands in for nvcc: counts its compilations and yields an image that differs every time.
case "$1" in
--version) echo "Cuda compilation tools, release 13.0, V@VERSION@"; exit ;;
--list-gpu-code) printf 'sm_120\\nsm_75\\nsm_90\\n'; exit ;;
esac
here=$(dirname "$0")
echo run >> "$here/runs"
while [ $# -gt 1 ]; do
  case "$1" in -o) cubin=$2 ;; -MF) depends=$2 ;; esac
  shift
done
head -c 20000 /dev/urandom > "$cubin"
printf 'cubin : %s' "$1" > "$depends"
[ -f "$here/headers" ] && sed 's/^/ /' "$here/headers" | tr -d '\\n' >> "$depends"
cat <<END
ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
END
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder that the test has for itself."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("KGEN_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def make_source() -> Callable[..., Source]:
    """Make a source of CUDA text that defines the named kernels."""

    def make(text: str, *kernels: str, stem: str = "kernel", path: Path | None = None) -> Source:
        spec: Any = SimpleNamespace(is_host=False, requires="")
        return Source(spec, stem, text, kernels, path)

    return make


@pytest.fixture
def make_program(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write an executable script under the test's folder."""

    def make(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def fake_nvcc(
    make_program: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Path]:
    """Install the stand-in for nvcc in a folder and make kgen use it; return that folder."""

    def install(folder: str, version: str = "13.0.88") -> Path:
        path = make_program(f"{folder}/nvcc", FAKE_NVCC.replace("@VERSION@", version))
        monkeypatch.setenv("KGEN_NVCC", str(path))
        return path.parent

    return install
