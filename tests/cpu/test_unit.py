"""What is included: a source is compiled anew whenever a file that its compiler reads is another."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kgen.cpu import unit
from kgen.cpu.build import build
from kgen.cpu.compiler import find_cxx
from kgen.cpu.host import _library
from kgen.sources.source import Source

pytestmark = pytest.mark.slow

RunKernel = Callable[..., NDArray[np.float32]]
MakeSource = Callable[..., Source]

KERNEL = 'extern "C" __global__ void k(float* y) { y[0] = VALUE; }\n'


@pytest.fixture
def value(make_source: MakeSource, tmp_path: Path) -> Callable[[str], int]:
    """Return the VALUE that the file mine.cu has after some lines."""

    def preprocess(lines: str) -> int:
        source = make_source(lines + KERNEL, "k", path=tmp_path / "mine.cu")
        text = unit.preprocessed(source, find_cxx(), [], f'#include "{source.filename}"\n')
        (found,) = re.findall(rb"y\[0\] =\s*(?:#.*\s*)?(\d+)", text)  # with a line marker between
        return int(found)

    return preprocess


def define(path: Path, value: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#define VALUE {value}\n")


def test_key_covers_source_and_headers(make_source: MakeSource, tmp_path: Path) -> None:
    define(tmp_path / "value.h", 1)
    text = '#include "value.h"\n' + KERNEL
    source = make_source(text, "k", path=tmp_path / "k.cu")
    first = build(source)
    assert build(source) == first
    define(tmp_path / "value.h", 2)
    assert build(source) != first
    assert build(make_source(text + "\n", "k", path=tmp_path / "k.cu")) != first


@pytest.mark.parametrize("again", [True, False], ids=["same process", "another process"])
@pytest.mark.parametrize(
    "lines",
    [
        '#include "sub/a.h"\n',
        '#define FILE "sub/a.h"\n#include FILE\n',
        "#include <sub/a.h>\n",
        '# /**/ include /**/ "sub/a.h"\n',
        '#inc\\\nlude "sub/a.h"\n',
    ],
)
def test_include_of_an_include_is_edited(
    value: Callable[[str], int], tmp_path: Path, lines: str, again: bool
) -> None:
    """The header that is included stands beside the source, not beside what includes it."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.h").write_text('#include "scale.h"\n')
    for number in (2, 3):
        define(tmp_path / "scale.h", number)
        assert value(lines) == number
        if not again:
            unit._unit.cache_clear()


@pytest.mark.parametrize("variable", ["CPATH", "CPLUS_INCLUDE_PATH"])
def test_header_of_a_search_path(
    value: Callable[[str], int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
) -> None:
    """The folder's place is meant from where the user is; a header beside the source is nearer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, "elsewhere")
    for number in (4, 5):
        define(tmp_path / "elsewhere" / "far.h", number)
        assert value('#include "far.h"\n') == number
    define(tmp_path / "third" / "far.h", 6)
    monkeypatch.setenv(variable, "third:elsewhere")
    assert value('#include "far.h"\n') == 6
    unit._unit.cache_clear()
    define(tmp_path / "far.h", 7)
    assert value('#include "far.h"\n') == 7


def test_header_that_comes_later(value: Callable[[str], int], tmp_path: Path) -> None:
    lines = '#if __has_include("late.h")\n#include "late.h"\n#else\n#define VALUE 7\n#endif\n'
    assert value(lines) == 7
    unit._unit.cache_clear()
    define(tmp_path / "late.h", 8)
    assert value(lines) == 8


def test_folders_of_any_name(
    run_kernel: RunKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "a, \"b\" 'c' \\d $e:f #g ü"
    monkeypatch.setenv("KGEN_CACHE_DIR", str(tmp_path / "cache" / name))
    monkeypatch.setenv("TMPDIR", str(tmp_path / name))
    for number in (1, 2):
        define(tmp_path / name / "value.h", number)
        path, x = tmp_path / name / "mine.cu", np.zeros((1, 1), np.float32)
        text = '#include "value.h"\n' + KERNEL
        assert run_kernel(text, x, block=1, args=("y",), path=path) == number


def test_a_host_version_is_timed_with_its_headers(make_source: MakeSource, tmp_path: Path) -> None:
    text = '#include "value.h"\nextern "C" int k() { return VALUE; }\n'
    source = make_source(text, "k", is_host=True, path=tmp_path / "mine.cpp")
    define(tmp_path / "value.h", 1)
    first = _library(source)
    define(tmp_path / "value.h", 2)
    assert _library(source) != first
