"""The sidecar: written, read, refused with the place, and compared with its file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kgen.adopted.sidecar import read_sidecar, sidecar_path, written
from kgen.adopted.source import adopted_source, read_adopted
from kgen.errors import UsageError
from kgen.evidence.inputs import make
from kgen.execute import run, target_name
from tests.adopted.files import KERNELS, adopted

TEXT = """op = "softmax"
[constants]
TPB = 128
[workspace.sums]
bytes = "4 * rows"
initial = "zeros"
[[kernel]]
name = "softmax"
grid = ["cols", "rows"]
block = "TPB"
shared = "4 * block"
[kernel.arguments]
x = "input"
y = "output"
s = "sums"
n = "cols"
"""


def read(folder: Path, text: str) -> object:
    path = folder / "k.kgen.toml"
    path.write_text(text)
    return read_sidecar(path)


def test_it_can_be_written_by_hand_and_read_again(tmp_path: Path) -> None:
    made = read(tmp_path, TEXT)
    assert read(tmp_path, written(made, {"kernel[0].grid": "why"})) == made  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "softmax"\n', "", r"kernel\[0\]: Object missing required field `name`"),
        ("shared =", "share =", r"kernel\[0\]: Object contains unknown field `share`"),
        ('"TPB"', '"TPV"', r"kernel\[0\]\.block = 'TPV' names TPV; known are TPB, cols, rows"),
        ('"4 * block"', '"4 *"', r"kernel\[0\]\.shared: '4 \*' is not a formula"),
        ('n = "cols"', 'n = "columns"', r"kernel\[0\]\.arguments\.n = 'columns' names columns"),
        ('"4 * rows"', '"4 * block"', r"workspace\.sums\.bytes = '4 \* block' names block"),
        ('"zeros"', '"zero"', r"workspace\.sums\.initial = 'zero': give zeros, a number, inf or -inf"),
        ('"softmax"\n[c', '"softplus"\n[c', "op = 'softplus': adopted files have softmax or log_softmax"),
        ('op = "softmax"', 'op = "softmax"\nelement = "float16"', "element = 'float16': adopted files have float32"),
        ('op = "softmax"', 'op = "softmax"\nsizes = "cols % 4 = 0"', "sizes: .* is not a formula"),
        ("TPB = 128", "rows = 128", "'rows' has a meaning of its own"),
        ('["cols", "rows"]', '["cols", "rows", 1]', r"kernel\[0\]\.grid: a grid has one or two dimensions"),
        ("op =", "op", "is not TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_it_is_named_with_its_place(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in TEXT
    with pytest.raises(UsageError, match=said):
        read(tmp_path, TEXT.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("softmax_inplace(float* data", "softmax_v2(float* data", "the file has no kernel softmax_inplace"),
        ("size_t rows, size_t cols) {\n    __shared__", "size_t rows, size_t columns) {\n    __shared__", r"kernel softmax_inplace \(line 14\) has the arguments data, rows, columns, and the sidecar gives data, rows, cols"),
        ("#define TPB 128", "#define TPB 64", "its line 1 has TPB = 64, and the sidecar 128"),
        ("#define TPB 128", "#define TPX 128", "the file names no constant TPB"),
        ("float* data, size_t rows", "Params data, size_t rows", "Params data of softmax_inplace .* cannot be 'in_place'"),
    ],
)  # fmt: skip
def test_a_file_that_changed_no_longer_fits(tmp_path: Path, old: str, new: str, said: str) -> None:
    source = adopted("in_place")
    path = tmp_path / "in_place.cu"
    shutil.copy(KERNELS / "in_place.cu", path)
    sidecar = source.contract.sidecar  # type: ignore[union-attr]
    sidecar_path(path).write_text(written(sidecar, {}))
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(
        UsageError, match=rf"in_place\.kgen\.toml does not fit in_place\.cu: {said}"
    ):
        read_adopted(str(path))


@pytest.mark.usefixtures("cxx")
def test_a_constant_is_set_where_it_stands(tmp_path: Path) -> None:
    path = KERNELS / "in_place.cu"
    sidecar = adopted("in_place").contract.sidecar  # type: ignore[union-attr]
    source = adopted_source(path, sidecar, {"TPB": "64"})
    assert source.text.splitlines()[0] == "#define TPB 64"
    assert source.contract.plan(5, 7).launches[0].block == 64  # type: ignore[union-attr]
    assert target_name(source).endswith("in_place.cu:TPB=64")
    assert run(source, make("uniform", 5, 33)).sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"TPA": "1"}, "no constant 'TPA' to set; did you mean 'TPB'"), ({"TPB": "x"}, "TPB=x: a constant is a whole number")],
)  # fmt: skip
def test_what_cannot_be_set(settings: dict[str, str], said: str) -> None:
    sidecar = adopted("in_place").contract.sidecar  # type: ignore[union-attr]
    with pytest.raises(UsageError, match=said):
        adopted_source(KERNELS / "in_place.cu", sidecar, settings)


def test_a_template_is_instantiated_with_what_is_set() -> None:
    sidecar = adopted("online_branch").contract.sidecar  # type: ignore[union-attr]
    source = adopted_source(KERNELS / "online_branch.cu", sidecar, {"THREADS": "64"})
    assert "online_softmax_body<64>(x, y, V)" in source.text
    assert source.contract.plan(2, 9).launches[0].block == 64  # type: ignore[union-attr]


def test_sizes_of_the_sidecar_are_asked() -> None:
    source = adopted("float4_rows")
    with pytest.raises(UsageError, match=r"takes sizes of which cols % 4 == 0.*3 x 33 is none"):
        source.contract.plan(3, 33)  # type: ignore[union-attr]
