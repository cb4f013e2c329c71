"""Commands on adopted files, as a user types them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.adopted.files import KERNELS
from tests.cli.conftest import Ended

Call = Callable[..., Ended]
pytestmark = pytest.mark.usefixtures("cxx")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """Copy files into the folder that commands are called in."""
    for name in ("in_place", "naive_int_overflow", "no_max_subtraction", "three_kernels"):
        shutil.copy(KERNELS / f"{name}.cu", tmp_path)
    return tmp_path


def test_from_a_file_to_the_finding(here: Path, call: Call) -> None:
    assert call("adopt", "no_max_subtraction.cu").code == 0
    assert (here / "no_max_subtraction.kgen.toml").is_file()
    assert call("run", "no_max_subtraction.cu").code == 0
    ended = call("run", "no_max_subtraction.cu", "--dist", "special_last")
    assert ended.code == 1 and "is wrong" in ended.err


def test_a_sidecar_is_not_lost(here: Path, call: Call) -> None:
    call("adopt", "in_place.cu")
    ended = call("adopt", "in_place.cu")
    assert ended.code == 2 and "is there already" in ended.err
    assert call("adopt", "in_place.cu", "--force", "--block", "TPB").code == 0


def test_files_without_a_sidecar_say_how_to_get_one(here: Path, call: Call) -> None:
    ended = call("run", "in_place.cu")
    assert ended.code == 2 and ended.err.rstrip().endswith("kgen adopt in_place.cu")


def test_odd_rows_are_told_and_no_failure(here: Path, call: Call) -> None:
    call("adopt", "in_place.cu")
    ended = call("run", "in_place.cu", "--dist", "near_minus_1e7", "--json")
    assert ended.code == 0 and ended.json["ok"]


def test_counted_swept_and_placed(here: Path, call: Call) -> None:
    call("adopt", "in_place.cu")
    counted = call(
        "count", "in_place.cu", "in_place.cu:TPB=64", "--rows", 4, "--cols", 256, "--json"
    )
    warps, fewer = (one["barriers"] for one in counted.json)
    assert warps > fewer
    swept = call(
        "sweep", "in_place.cu", "--constant", "TPB=64,128", "--rows", 8, "--cols", 256,
        "--on", "cpu", "--db", here / "rows.db", "--json",
    )  # fmt: skip
    assert [row["variant"] for row in swept.json] == ["in_place.cu:TPB=64", "in_place.cu:TPB=128"]
    assert {row["outcome"] for row in swept.json} == {"ok"}
    assert call("place", "in_place.cu", "--json").json["version"] in ("k2", "v1", "c1")


def test_exported_with_its_launches(here: Path, call: Call) -> None:
    call("adopt", "three_kernels.cu")
    assert call("export", "three_kernels.cu", "--out", "out").code == 0
    script = (here / "out" / "three_kernels.py").read_text()
    compile(script, "script", "exec")
    assert (
        '"d_max": (rows * 4, None),' in script
        and "cudaMalloc" not in (here / "out" / "three_kernels.cu").read_text()
    )


def test_compared_without_axes(here: Path, call: Call) -> None:
    for name in ("in_place", "three_kernels"):
        call("adopt", f"{name}.cu")
    ended = call("diff", "in_place.cu", "three_kernels.cu")
    assert ended.code == 0 and "same axes" not in ended.out and "--- in_place.cu" in ended.out


@pytest.mark.slow
def test_mistakes_in_it_are_caught(here: Path, call: Call) -> None:
    call("adopt", "in_place.cu")
    ended = call("mutate", "in_place.cu", "--json")
    assert ended.json["caught"] >= 20
    assert call("mutate", "naive_int_overflow.cu").code == 2
    call("adopt", "naive_int_overflow.cu")
    assert "is wrong as it stands" in call("mutate", "naive_int_overflow.cu").err


def test_shown_by_its_launches(here: Path, call: Call) -> None:
    call("adopt", "three_kernels.cu")
    shown = call("show", "three_kernels.cu", "--rows", 4, "--cols", 512)
    assert "normalize_kernel     8    256" in shown.out and "rows=4, cols=512" in shown.out
    assert len(call("show", "three_kernels.cu", "--json").json["launches"]) == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("adopt", "in_place.txt"), "kgen adopts files whose names end in .cu"),
        (("adopt", "absent.cu"), "absent.cu cannot be read: No such file"),
        (("adopt", "in_place.cu", "--argument", "rows"), "write NAME=ROLE"),
        (("run", "in_place.cu:TPB=64"), "in_place.cu has no in_place.kgen.toml beside it"),
        (("adopt", "in_place.cu", "--kernel", "softmax"), "no kernel 'softmax'"),
        (("sweep", "--constant", "TPB=64"), "an adopted file is swept by its constants"),
        (("sweep", "in_place.cu", "--axis", "vec=1"), "an adopted file is swept by its constants"),
        (("place", "v5"), "v5 is no adopted file"),
    ],
)
def test_wrong_usage(here: Path, call: Call, words: tuple[str, ...], said: str) -> None:
    ended = call(*words)
    assert ended.code == 2 and said in ended.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("#include <cub/cub.cuh>", "k.cu:1:10: fatal error: cub/cub.cuh"),
        ('__device__ float f(float x) { asm("ex2 %0, %1;" : "=f"(x) : "f"(x)); return x; }', "runs no PTX: line 1 has some"),
        ("__device__ float f(float x) { return __fsqrt_rz(x); }", "the CPU executor does not know __fsqrt_rz"),
    ],
)  # fmt: skip
def test_what_the_executor_lacks_is_named(tmp_path: Path, call: Call, line: str, said: str) -> None:
    kernel = (
        "__global__ void softmax(const float* x, float* y, int cols) { for (int c = threadIdx.x; "
        "c < cols; c += 32) y[blockIdx.x * cols + c] = expf(f(x[blockIdx.x * cols + c])); }"
    )
    (tmp_path / "k.cu").write_text(f"{line}\n{kernel}\n")
    assert call("adopt", "k.cu", "--block", 32).code == 0
    ended = call("check", "k.cu")
    assert ended.code == 1 and said in ended.err


def test_a_terminal_is_asked(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    one = (KERNELS / "any_order.cu").read_text().split("void go(")[0]
    (tmp_path / "two.cu").write_text(one + one.replace("scaled_softmax", "other"))
    answers = {"Which kernel?": "other", "what is float scale": "1.0", "what is bool negate": "0"}
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr(
        "typer.prompt",
        lambda question, **_: next(v for k, v in answers.items() if question.startswith(k)),
    )
    assert call("adopt", "two.cu", "--block", 32).code == 0
    written = (tmp_path / "two.kgen.toml").read_text()
    assert 'name = "other"' in written and "scale = 1.0" in written and "negate = 0" in written
