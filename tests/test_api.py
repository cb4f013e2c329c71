"""What `import kgen` offers, what it loads, and what a wheel of it carries."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kgen
from kgen.errors import CompileFailed, UsageError
from kgen.evidence.inputs import make
from kgen.evidence.reference import Criterion, judge, reference64
from kgen.specs.spec import Spec
from kgen.specs.versions import VERSIONS
from kgen.toolchain import CompileOptions

REPOSITORY = Path(__file__).parents[1]


class Metres(np.ndarray[Any, Any]):
    """An array that means more than its numbers."""


def test_all_that_is_offered_is_there() -> None:
    assert sorted(kgen.__all__) == ["compile", "render", "run", "spec", "versions"]
    assert all(getattr(kgen, name).__doc__ for name in kgen.__all__)


def test_versions_are_names_in_a_list_of_its_own() -> None:
    names = kgen.versions()
    assert names == list(VERSIONS)
    names.clear()
    assert kgen.versions() == list(VERSIONS)


def test_spec_is_validated() -> None:
    spec = kgen.spec("v7:items=4,threads=512")
    assert isinstance(spec, Spec)
    assert (spec.version, spec.items_per_thread, spec.threads_per_block) == ("v7", 4, 512)
    for wrong in ("v77", "v7:itmes=4", "v8:topology=two_level"):
        with pytest.raises(UsageError):
            kgen.spec(wrong)


def test_render_takes_a_spec_or_a_variant() -> None:
    source = kgen.render("v7:items=2")
    assert source == kgen.render(kgen.spec("v7:items=2"))
    assert source.filename == "softmax_v7_items2.cu" and source.kernels == ("softmax_v7_items2",)
    assert "ITEMS_PER_THREAD = 2;" in source.text
    assert kgen.render("v7").spec.items_per_thread == 4  # auto, for rows of 4096
    with pytest.raises(UsageError, match="topology=two_level"):
        kgen.render(kgen.spec("v8").replace(topology=kgen.spec("v5").topology))


def test_compile_takes_a_variant_a_spec_or_a_source(nvcc: None) -> None:
    binary = kgen.compile("v5")
    assert binary.arch == "sm_90" and binary.image.startswith(b"\x7fELF")
    assert [kernel.kernel for kernel in binary.kernels] == ["softmax_v5"]
    assert kgen.compile(kgen.spec("v5")).image == binary.image
    assert kgen.compile(kgen.render("v5"), "sm_90").image == binary.image
    older = kgen.compile("v5", "sm_75", CompileOptions(use_fast_math=True))
    assert older.arch == "sm_75" and older.image != binary.image
    assert len(kgen.compile("t1").kernels) == 3


def test_compile_refuses(nvcc: None, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not compile for 'sm_1'"):
        kgen.compile("v5", "sm_1")
    with pytest.raises(UsageError, match="for the host"):
        kgen.compile("cpu")
    wrong = kgen.render("v5").text.replace("expf(-fabsf(", "exqf(-fabsf(")
    (tmp_path / "wrong.cu").write_text(wrong)
    from kgen.sources.edited import read_source

    with pytest.raises(CompileFailed, match='identifier "exqf" is undefined'):
        kgen.compile(read_source(tmp_path / "wrong.cu"))


def test_run_takes_a_variant_a_spec_a_source_or_a_file(cxx: None, tmp_path: Path) -> None:
    x = make("uniform", 3, 67)
    y = kgen.run("v6", x)
    assert y.dtype == np.float32 and y.shape == x.shape
    np.testing.assert_allclose(y, reference64(x), rtol=2e-6)
    source = kgen.render("v6")
    (tmp_path / source.filename).write_text(source.text)
    for target in (kgen.spec("v6"), source, str(tmp_path / source.filename)):
        np.testing.assert_array_equal(kgen.run(target, x), y)
    with pytest.raises(UsageError, match="kernels run on cpu or gpu"):
        kgen.run("v6", x, on="banana")


def test_run_resolves_auto_items_from_the_row_length(cxx: None) -> None:
    x = make("uniform", 1, 9000)
    np.testing.assert_array_equal(kgen.run("v7", x), kgen.run("v7:items=9", x))


def test_run_takes_any_strides_and_leaves_its_input_alone(cxx: None) -> None:
    whole = make("uniform", 6, 40)
    before = whole.copy()
    whole.flags.writeable = False
    views = [whole[::-1], whole[:, ::-1], whole[::2, 1::3], whole.T, whole[2], whole[:, 5]]
    views += [np.broadcast_to(whole[0], (4, 40)), whole[1:1], whole[:, :1]]
    for view in views:
        y = kgen.run("v6_double", view)
        assert y.shape == view.shape and y.flags.c_contiguous and y.flags.writeable
        expected = reference64(view.reshape(-1, view.shape[-1])).reshape(view.shape)
        np.testing.assert_allclose(y, expected, rtol=2e-6)
    np.testing.assert_array_equal(whole, before)


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.ma.masked_less(np.zeros((2, 3), np.float32), 1), r"MaskedArray; .*: numpy.ma.filled"),
        (np.zeros((2, 3), np.float32).view(Metres), "a Metres; kernels take a plain NumPy array"),
        ([[1.0, 2.0]], "a list; kernels take a plain NumPy array"),
        (np.float32(1), "a float32; kernels take a plain NumPy array"),
        *(
            (np.zeros((2, 3), kind), ", and the kernel takes float32: convert the input")
            for kind in ("?", "i4", "f8", ">f4", "c8", "O", "M8[s]", "m8[s]", "U1", "V4")
        ),
    ],
    ids=repr,
)
def test_run_refuses_what_it_would_take_for_other_numbers(x: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        kgen.run("v5", x)


def test_no_warning_of_a_signalling_nan(cxx: None) -> None:
    """Which is invalid as soon as it is converted: also with warnings as errors, as here."""
    x = make("uniform", 3, 40)
    x.view(np.uint32)[1, 7] = 0x7FA00001
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        y = kgen.run("v5", x)
        verdict = judge(y, x, Criterion(40))
        signalling = judge(x, x, Criterion(40))
    assert verdict.ok and np.isnan(y[1]).all() and not np.isnan(y[[0, 2]]).any()
    assert not signalling.ok


@pytest.mark.parametrize(
    "statement",
    [
        "import kgen",
        "import kgen; kgen.versions(); kgen.spec('v7:items=4')",
        "from kgen.cli import main; sys.argv = ['kgen', 'list']; main()",
        "from kgen.cli import main; sys.argv = ['kgen', 'list', '--json']; main()",
    ],
)
def test_what_is_not_needed_is_not_imported(statement: str) -> None:
    heavy = ("numpy", "jinja2", "pycuda", "scipy")
    program = (
        f"import atexit, sys\n"
        f"atexit.register(lambda: sys.stderr.write(repr(sys.modules.keys() & {set(heavy)})))\n"
        f"{statement}"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "set()")


def test_types_are_for_users_too() -> None:
    assert (Path(kgen.__file__).parent / "py.typed").is_file()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel of this checkout, with what is installed here."""
    pytest.importorskip("hatchling", reason="hatchling, which builds the wheel, is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--wheel-dir", str(folder), str(REPOSITORY)]
    subprocess.run(command, check=True, timeout=120)
    (path,) = folder.glob("kgen-*.whl")
    return path


def test_a_wheel_carries_what_is_no_python(wheel: Path) -> None:
    needed = {
        f"kgen/{path.relative_to(root).as_posix()}"
        for root, pattern in (
            (REPOSITORY, "templates/**/*.j2"),
            (REPOSITORY / "kgen", "cpu/runtime/*"),
            (REPOSITORY / "kgen", "specs/*.toml"),
            (REPOSITORY / "kgen", "py.typed"),
        )
        for path in root.glob(pattern)
        if path.is_file()
    }
    assert {"kgen/templates/softmax.cu.j2", "kgen/cpu/runtime/block.h"} < needed
    assert {"kgen/specs/notes.toml", "kgen/py.typed"} < needed
    carried = set(zipfile.ZipFile(wheel).namelist())
    assert needed - carried == set()
    assert [name for name in carried if name.startswith(("tests/", "bench/", "generated/"))] == []


def test_an_installed_wheel_builds_and_runs(wheel: Path, cxx: None, tmp_path: Path) -> None:
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    environment = {**os.environ, "PYTHONPATH": str(site)}
    program = (
        "import kgen, numpy as np\n"
        "print(kgen.__file__)\n"
        "open('v7.cu', 'w').write(kgen.render('v7').text)\n"
        "print(kgen.run('v7', np.zeros((2, 8), np.float32)).tolist())\n"
    )
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    place, y = ran.stdout.splitlines()
    assert Path(place).is_relative_to(site)
    assert y == str([[0.125] * 8] * 2)
    assert (tmp_path / "v7.cu").read_text() == kgen.render("v7").text
