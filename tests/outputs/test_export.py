"""The exported script, run against a PyCUDA of ours; and the files it comes in."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import black
import numpy as np
import pytest
from hypothesis import given, settings

from kgen import launch
from kgen.errors import UsageError
from kgen.evidence import inputs, reference
from kgen.gpu import source_module_options
from kgen.outputs.export import export, script
from kgen.sources.edited import read_source
from kgen.sources.render import render
from kgen.sources.source import Source
from kgen.specs.declared import choices
from kgen.specs.rules import problems_for
from kgen.specs.rules.shapes import most_rows
from kgen.specs.spec import Spec
from kgen.specs.variants import checked
from kgen.specs.versions import VERSIONS
from tests.outputs.fake_pycuda import CompileError, Error, FakePycuda, OutOfMemory
from tests.strategies import resolved, valid_specs

pytestmark = pytest.mark.slow

GPU_VERSIONS = [name for name, version in VERSIONS.items() if not version.spec.is_host]
OVERRIDES = [
    "k1:cache=inputs_shared,vec=4,threads=64",
    "t1:update=online,merge=paired",
    "t1:cache=exps_output,static_cols=257",
    "t2:tile=100,threads=64",
    "v3:items=8,threads=64",
    "v7:items=8,trip=runtime",
    "v8:cache=inputs_shared,threads=128",
    "v9:grid=auto",
    "v3:next_row=async,vec=4,unaligned=scalar_row,grid=4",
    "v10:rows_at_once=4,row_loop=grid_stride",
    "v13:row_order=contiguous,stores=streaming",
    "v9:cache=inputs_shared",
    "v13:cache=exps_shared_bulk,threads=512",
    "v14:cache=inputs_shared_async",
    "v8:cache=inputs_shared,vec=4,static_cols=1000,threads=512,normalize=divide,exp=exp2",
    "t1:cache=exps_output,static_cols=1000,threads=512,exp=exp2,topology=tree,min_blocks=2",
    "v3:op=log_softmax",
    "v7:dtype=float16",
    "v8:dtype=bfloat16,out_dtype=float32",
    "v1:out_dtype=bfloat16",
    "v1:cache=exps_output,dtype=bfloat16",
    "v5:dtype=bfloat16,out_dtype=float16,op=log_softmax",
    "v8:cache=inputs_shared,dtype=float16,vec=8",
    "v14:dtype=float64",
]


def source(variant: str) -> Source:
    return render(checked(variant))


@dataclass
class Exported:
    """A script as a module, and the GPU that it sees."""

    module: ModuleType
    gpu: FakePycuda
    source: Source
    rows: int
    cols: int

    def main(self, *more: str) -> int:
        self.gpu.launches_at_events.clear()  # what comes after them is not computed
        arguments = ("--rows", str(self.rows), "--cols", str(self.cols), *more)
        return int(self.module.main(list(arguments)))


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def make_exported(variant: str = "v2", rows: int = 9, cols: int = 257) -> Exported:
        exported = source(variant)
        cols = exported.spec.static_cols or cols
        rows = min(rows, most_rows(exported.spec))
        gpu = FakePycuda(launch.plan(exported, rows, cols), exported.spec.op)
        gpu.install(monkeypatch)
        _, path = export(exported, tmp_path)
        return Exported(load(path), gpu, exported, rows, cols)

    return make_exported


@pytest.mark.parametrize("variant", GPU_VERSIONS + OVERRIDES)
def test_launches_as_the_plan_says_and_passes(
    variant: str, make: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    exported = make(variant)
    gpu, planned = exported.gpu, list(exported.gpu.plan.launches)
    assert exported.main() == 0
    assert gpu.launches == planned * (1 + 100 + 1000)
    assert gpu.launches_at_events == [101 * len(planned), 1101 * len(planned)]
    assert set(gpu.dynamic_allowed) == {one.shared_bytes for one in planned} - {0}
    assert gpu.contexts == 0
    out, err = capsys.readouterr()
    assert (
        f"{exported.source.stem} on Fake GPU, {exported.rows} x {exported.cols}, seed 42\n" in out
    )
    assert "time: 5000.00 us a call, the mean of 1000\n" in out
    assert "note:" not in out and err == ""


@pytest.mark.parametrize("variant", GPU_VERSIONS + OVERRIDES)
def test_its_formulas_are_those_of_kgen(variant: str, make: Any) -> None:
    exported = make(variant)
    module, spec = exported.module, exported.source.spec
    shapes = [(r, c) for r in (1, 7, 256, 257, 70000) for c in (1, 100, 1000, 1025, 65536)]
    for rows, cols in shapes:
        assert module.grid_blocks(rows, cols) == spec.grid_for(rows, cols)
        asked = reference.criterion(spec, cols)
        assert module.tolerance(cols) == pytest.approx(asked.tolerance, rel=1e-12)
        if asked.roundings:
            slack = (asked.relative_slack, asked.absolute_slack)
            assert slack == (module.RELATIVE_SLACK, module.ABSOLUTE_SLACK)
        if spec.takes_shared:
            assert module.shared_bytes(cols) == spec.shared_bytes(cols)


@pytest.mark.parametrize("blocks, asked", [(8, []), (16, [1])])
def test_asks_for_clusters_that_not_every_gpu_takes(
    blocks: int, asked: list[int], make: Any
) -> None:
    exported = make(f"v13:blocks_per_row={blocks}")
    assert exported.main() == 0 and exported.gpu.large_clusters == asked


@pytest.mark.parametrize("variant", GPU_VERSIONS + OVERRIDES)
def test_it_takes_the_shapes_that_the_kernel_takes(variant: str, make: Any) -> None:
    exported = make(variant)
    module, spec = exported.module, exported.source.spec
    longest = module.MAX_COLS
    assert not problems_for(spec, 1, longest) and problems_for(spec, 1, longest + 1)
    module.refuse(1, longest)
    with pytest.raises(module.Failure, match=f"cols={longest + 1} is ") as refusal:
        module.refuse(1, longest + 1)
    assert refusal.value.exit_code == 2
    cols = spec.static_cols or min(4096, longest)
    rows = min(1024, most_rows(spec))
    assert list(module.DEFAULTS.items()) == [("rows", rows), ("cols", cols), ("seed", 42)]


def test_compiles_as_kgen_does(make: Any) -> None:
    exported = make()
    assert exported.main() == 0
    expected = (exported.source.text, {**source_module_options(), "arch": "sm_90"})
    assert exported.gpu.compiled == [expected]


@pytest.mark.parametrize("word", choices("dtype"))
def test_the_input_is_that_of_the_studies(word: str, make: Any) -> None:
    exported = make(f"v2:dtype={word}")
    assert exported.main("--seed", "7") == 0
    dtype = exported.source.spec.dtype
    x = inputs.make("uniform", 9, 257, seed=7, element=dtype)
    np.testing.assert_array_equal(exported.gpu.x, x)


@pytest.mark.parametrize(
    ("variant", "bandwidth"),
    [  # 9 x 257 elements are read once and written once, in 0.1 us
        ("v2", "185.0"),
        ("v2:dtype=float16", "92.5"),
        ("v2:out_dtype=bfloat16", "138.8"),
        ("v2:dtype=bfloat16,out_dtype=float32", "138.8"),
        ("v2:dtype=float64", "370.1"),
    ],
)
def test_bandwidth_and_a_gpu_that_waits_for_python(
    variant: str, bandwidth: str, make: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    exported = make(variant)
    exported.gpu.elapsed_ms = 0.1  # for 1000 calls
    assert exported.main() == 0
    out = capsys.readouterr().out
    assert f"time: 0.10 us a call, the mean of 1000\nbandwidth: {bandwidth} GB/s" in out
    assert "to issue a call; the GPU waited" in out


def unwritten(old: Any, new: Any) -> None:
    new[3, 5] = old[3, 5]


def all_zero(old: Any, new: Any) -> None:
    new[:] = 0


def off_by(share: float) -> Any:
    def damage(old: Any, new: Any) -> None:
        new[3, 5] += share * new[3].max()

    return damage


@pytest.mark.parametrize(
    "damage, message",
    [
        (unwritten, "element (row 3, column 5) is nan instead of"),
        (all_zero, "is 0 instead of"),
        (off_by(3e-6), "element (row 3, column 5) is"),
    ],
)
def test_a_wrong_output_fails(
    damage: Any, message: str, make: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    exported = make()
    exported.gpu.damage = damage
    assert exported.main() == 1
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("softmax_v2.cu: ") and message in err
    assert len(exported.gpu.launches) == 1 and exported.gpu.contexts == 0


# Of the row's largest value: what the types' tolerances allow, and what they do not.
@pytest.mark.parametrize(
    ("variant", "fine", "wrong"),
    [
        ("v2", 2e-6, 3e-6),
        ("v2:dtype=float64", 4e-15, 6e-15),
        ("v2:dtype=float16,out_dtype=float32", 2e-6, 3e-6),
        ("v3:op=log_softmax", 0, 1e-5),
    ],
)
def test_errors_are_judged_by_the_type(variant: str, fine: float, wrong: float, make: Any) -> None:
    exported = make(variant)
    for share, code in ((fine, 0), (wrong, 1)):
        exported.gpu.damage = off_by(share)
        assert exported.main() == code


@pytest.mark.parametrize("word", ["float16", "bfloat16"])
def test_an_output_is_rounded_and_not_cut_off(
    word: str, make: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    exported = make(f"v2:out_dtype={word}")
    element = exported.source.spec.out_dtype

    def cut_off(old: Any, new: Any) -> None:
        rounded = new.astype(old.dtype)
        rounded.view(np.uint16)[rounded.astype(np.float64) > new] -= 1
        new[:] = rounded

    assert exported.main() == 0
    assert (
        f"of the row's largest value beyond the rounding to {element}, " in capsys.readouterr().out
    )
    exported.gpu.damage = cut_off
    assert exported.main() == 1
    assert f"beyond the rounding to {element}, where" in capsys.readouterr().err


@pytest.mark.parametrize(
    "where, error, code, message",
    [
        ("init", Error("no device"), 3, "no GPU can be used (no device)"),
        ("make_context", Error("busy"), 3, "no GPU can be used (busy)"),
        ("compile", OSError("nvcc?"), 3, "nvcc cannot be run (nvcc?); put it on PATH"),
        ("compile", CompileError("line 3"), 1, "nvcc rejects the file: line 3"),
        ("mem_alloc", OutOfMemory(), 2, "there is not enough memory for 9 x 257"),
        ("mem_alloc", MemoryError(), 2, "there is not enough memory for 9 x 257"),
        ("launch", Error("illegal address"), 1, "CUDA reports: illegal address"),
    ],
)
@pytest.mark.parametrize("dies", [False, True])
def test_what_goes_wrong_is_one_sentence(
    where: str,
    error: Exception,
    code: int,
    message: str,
    dies: bool,
    make: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    exported = make()
    exported.gpu.errors[where] = error
    if dies:
        exported.gpu.errors["pop"] = Error("the context is gone")
    assert exported.main() == code
    assert capsys.readouterr().err == f"softmax_v2.cu: {message}\n"
    assert exported.gpu.contexts == 0


@pytest.mark.parametrize(
    "content, message", [(None, "cannot be read"), (b"\xff\xfe", "cannot be read")]
)
def test_a_missing_or_broken_file(
    content: bytes | None,
    message: str,
    make: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    exported = make()
    (tmp_path / "softmax_v2.cu").unlink()
    if content is not None:
        (tmp_path / "softmax_v2.cu").write_bytes(content)
    assert exported.main() == 2
    assert message in capsys.readouterr().err


def test_shared_memory_that_this_gpu_lacks(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    exported = make("v8:cache=inputs_shared,vec=4", cols=2048)
    exported.gpu.shared_limit = 65536
    assert exported.main() == 2
    # (65536 - 272 static) bytes, 8 rows of whole vectors a block
    assert capsys.readouterr().err.endswith(
        "cols=2048 takes 65536 bytes of shared memory a block, and this GPU has 65264 for it; "
        "use at most 2036\n"
    )


@pytest.mark.parametrize(
    "variant, arguments, message",
    [
        ("v7:items=2", ["--cols", "2052"], "cols=2052 is too many; use at most 2051"),
        ("v2:static_cols=100", ["--cols", "99"], "cols=99 is not the 100 that it was made for"),
        ("v2", ["--rows", "3000000000"], "rows=3000000000 is too many"),
        ("t1", ["--rows", "2000000", "--cols", "2000000"], "takes too many blocks"),
    ],
)
def test_shapes_that_are_refused(
    variant: str,
    arguments: list[str],
    message: str,
    make: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    exported = make(variant)
    assert exported.module.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err and err.count("\n") == 1
    assert exported.gpu.compiled == []


@pytest.mark.parametrize("value", ["-1", "1.5", "many", ""])
@pytest.mark.parametrize("option", ["--rows", "--cols", "--seed"])
def test_arguments_that_are_no_numbers(
    option: str, value: str, make: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        make().module.main([option, value])
    assert ended.value.code == 2
    assert f"argument {option}: {value!r} is not a whole number" in capsys.readouterr().err


@pytest.mark.parametrize("empty", ["--rows", "--cols"])
def test_an_empty_matrix_needs_nothing(
    empty: str, make: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    exported = make("v2:static_cols=100")
    exported.module.MISSING = "no PyCUDA"
    assert exported.module.main([empty, "0"]) == 0
    assert "is empty: nothing to launch" in capsys.readouterr().out


def python(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a Python that sees no installed package, neither kgen nor numpy nor PyCUDA."""
    return subprocess.run(
        [sys.executable, "-I", "-S", *arguments], capture_output=True, text=True, check=False
    )


def test_it_stands_alone(tmp_path: Path) -> None:
    _, path = export(source("v7"), tmp_path)
    ran = python(path, "--rows", "0")
    assert (ran.returncode, ran.stderr) == (0, "")
    ran = python(path)
    assert ran.returncode == 3 and ran.stdout == ""
    assert ran.stderr == (
        "softmax_v7.cu: No module named 'numpy'; get a driver and: pip install numpy pycuda\n"
    )
    ran = python(path, "--help")
    assert ran.returncode == 0 and "--seed" in ran.stdout


def assert_black_agrees(text: str) -> None:
    for line_length in (88, 100):
        assert black.format_str(text, mode=black.Mode(line_length=line_length)) == text


@settings(max_examples=12, deadline=None)
@given(valid_specs().filter(lambda spec: not spec.is_host))
def test_black_leaves_it_as_it_is(spec: Spec) -> None:
    assert_black_agrees(script(render(resolved(spec))))


@pytest.mark.parametrize("length", [88, 89, 100, 101])
def test_black_agrees_at_any_length_of_the_name(length: int) -> None:
    name = "k" * (length - len('    "": ["x", "y", "rows", "cols"],'))
    assert_black_agrees(script(replace(source("v2"), stem=name, kernels=(name,))))


def test_black_and_ruff_find_nothing(tmp_path: Path) -> None:
    scripts = [str(export(source(name), tmp_path)[1]) for name in GPU_VERSIONS]
    for tool in (["black", "--check", "--quiet"], ["ruff", "check", "--isolated", "--quiet"]):
        ran = subprocess.run(
            [sys.executable, "-m", *tool, *scripts], capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_writes_the_source_and_the_script(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    paths = export(source("v7:items=8"), folder)
    assert paths == (folder / "softmax_v7_items8.cu", folder / "softmax_v7_items8.py")
    assert sorted(folder.iterdir()) == sorted(paths)
    assert paths[0].read_text() == source("v7:items=8").text
    assert paths[1].read_text() == script(source("v7:items=8"))


def test_an_edited_file_is_exported_as_edited(tmp_path: Path) -> None:
    edited = tmp_path / "mine.cu"
    edited.write_text(source("v2").text + "// edited\n")
    cu_path, script_path = export(read_source(edited), tmp_path / "out")
    assert cu_path.read_text() == edited.read_text()
    assert '"softmax_v2": ["x", "y", "rows", "cols"]' in script_path.read_text()


def test_the_host_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"softmax_cpu\.cpp is plain C\+\+ for the host"):
        export(source("cpu"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"file/softmax_v7\.cu"):
        export(source("v7"), tmp_path / "file")
