"""Plug-ins of peers: how they are found and loaded, and what becomes of everything they raise."""

from __future__ import annotations

import importlib.util
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kgen.errors import CheckFailed, MissingTool, UsageError
from kgen.timing.peers import Peer, PeerFailed, find_peers, peer_dir

OWN = [
    *("cudnn", "cupy", "liger", "quack", "torch", "torch_compile"),
    *("triton_online", "triton_three_kernel", "triton_tutorial"),
]


TYPESTRS = {"float32": "<f4", "float16": "<f2", "bfloat16": "<V2", "float64": "<f8"}


class Matrix:
    """Stands in for a matrix in device memory."""

    shape = (2, 8)

    def __init__(self, dtype: str = "float32") -> None:
        self.dtype = dtype

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "data": (4096, False),
            "shape": self.shape,
            "typestr": TYPESTRS[self.dtype],
            "version": 3,
        }


X, Y = Matrix(), Matrix()


def peer(folder: Path, text: str, name: str = "mine") -> Peer:
    """Write a plug-in and return it as it is found."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return next(found for found in find_peers(folder) if found.name == name)


def binding(body: str) -> str:
    return f'"""Mine."""\nfrom kgen.errors import UsageError\ndef bind(x, y, stream):\n    {body}\n'


def test_own_peers_are_found_described_and_not_imported() -> None:
    before = set(sys.modules)
    found = find_peers()
    assert [one.name for one in found] == OWN
    assert all(one.description and one.path.is_file() for one in found)
    assert set(sys.modules) == before


@pytest.mark.parametrize("name", OWN)
def test_own_peer_loads_or_says_what_is_missing(name: str) -> None:
    one = next(one for one in find_peers() if one.name == name)
    try:
        assert callable(one.load())
    except MissingTool as missing:
        assert str(missing)


@pytest.mark.skipif(
    importlib.util.find_spec("nvidia.cudnn") is not None, reason="cuDNN is installed"
)
def test_cudnn_is_missed_when_it_is_bound() -> None:
    bind = next(one for one in find_peers() if one.name == "cudnn").load()
    with pytest.raises(MissingTool, match=r"nvidia"):
        bind(X, Y, 0)


@pytest.mark.parametrize("types", [("bfloat16", "float32"), ("float32", "float16")])
def test_cudnn_refuses_to_convert(types: tuple[str, str]) -> None:
    bind = next(one for one in find_peers() if one.name == "cudnn").load()
    words = f"cuDNN writes the type that it reads, and not {types[1]} of {types[0]}"
    with pytest.raises(UsageError, match=words):
        bind(Matrix(types[0]), Matrix(types[1]), 0)


@pytest.fixture
def fake_torch(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stands for PyTorch, as far as a tensor over a matrix needs it."""

    def as_tensor(bits: Any, device: str) -> SimpleNamespace:
        typestr = bits.__cuda_array_interface__["typestr"]
        return SimpleNamespace(view=lambda dtype: (typestr, dtype, device))

    torch: Any = SimpleNamespace(
        as_tensor=as_tensor,
        Tensor=object,
        bfloat16="torch.bfloat16",
        float64="torch.float64",
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    return SimpleNamespace(torch=torch)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("bfloat16", ("<i2", "torch.bfloat16", "cuda")),
        ("float64", ("<i8", "torch.float64", "cuda")),
    ],
)
def test_tensors_are_bits_seen_as_the_type(
    fake_torch: SimpleNamespace, dtype: str, expected: tuple[str, str, str]
) -> None:
    spec = importlib.util.spec_from_file_location("a_torch", peer_dir() / "_torch.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.tensor_over(Matrix(dtype)) == expected


def test_helpers_and_other_files_are_no_peers(tmp_path: Path) -> None:
    for name in ("zeta.py", "alpha.py", "_helper.py", "__init__.py", "README.md"):
        (tmp_path / name).write_text("", encoding="utf-8")
    assert [one.name for one in find_peers(tmp_path)] == ["alpha", "zeta"]


def test_description_is_the_first_line_of_the_docstring(tmp_path: Path) -> None:
    assert peer(tmp_path, '"""Fast one.\n\nMore of it.\n"""\n').description == "Fast one."
    assert peer(tmp_path, "x = 1\n").description == ""


def test_unknown_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no folder .*nowhere"):
        find_peers(tmp_path / "nowhere")


def test_installed_package_has_its_peers_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bench_peers").mkdir()
    monkeypatch.setattr("kgen.__file__", str(tmp_path / "__init__.py"))
    assert peer_dir.__wrapped__() == tmp_path / "bench_peers"


def test_bound_call_passes_arguments_and_result(tmp_path: Path) -> None:
    bind = peer(tmp_path, binding("return lambda: (x, y, stream)")).load()
    assert bind(X, Y, 7)() == (X, Y, 7)


def test_peer_can_be_sent_to_another_process(tmp_path: Path) -> None:
    sent = pickle.loads(pickle.dumps(peer(tmp_path, binding("return lambda: stream"))))
    assert sent.load()(X, Y, 3)() == 3


def test_module_is_imported_once(tmp_path: Path) -> None:
    one = peer(
        tmp_path, binding("CALLS.append(stream); return lambda: list(CALLS)") + "CALLS = []\n"
    )
    one.load()(X, Y, 1)
    assert one.load()(X, Y, 2)() == [1, 2]


def test_neighbours_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "_helper.py").write_text("ANSWER = 42\n", encoding="utf-8")
    text = "from ._helper import ANSWER\n" + binding("return lambda: ANSWER")
    assert peer(tmp_path, text).load()(X, Y, 0)() == 42


def test_same_name_in_two_folders_is_two_modules(tmp_path: Path) -> None:
    one, two = (peer(tmp_path / name, binding(f"return lambda: {name!r}")) for name in ("a", "b"))
    assert (one.load()(X, Y, 0)(), two.load()(X, Y, 0)()) == ("a", "b")


def test_peer_named_like_a_package_does_not_hide_it(tmp_path: Path) -> None:
    text = "import json\n" + binding("return lambda: json.dumps([1])")
    assert peer(tmp_path, text, "json").load()(X, Y, 0)() == "[1]"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_package\n", "no module named no_such_package"),
        ("from json import no_such_name\n", "cannot import name 'no_such_name'"),
        ("raise ImportError('libthing.so.9: cannot open shared object file')\n", "libthing.so.9"),
    ],
)
def test_missing_import_skips(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(MissingTool, match=f"^{reason}"):
        peer(tmp_path, text).load()


def test_missing_import_in_bind_skips(tmp_path: Path) -> None:
    bind = peer(tmp_path, binding("import no_such_package")).load()
    with pytest.raises(MissingTool, match=r"^no module named no_such_package$"):
        bind(X, Y, 0)


def test_refused_shape_keeps_its_reason(tmp_path: Path) -> None:
    bind = peer(tmp_path, binding("raise UsageError(f'{x.shape[1]} columns are too few')")).load()
    with pytest.raises(UsageError, match=r"^8 columns are too few$"):
        bind(X, Y, 0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def bind(:\n", r"^peer mine raised SyntaxError: .*mine.py, line 1\)$"),
        ("1 / 0\n", "^peer mine raised ZeroDivisionError: division by zero$"),
        ("raise SystemExit\n", "^peer mine raised SystemExit$"),
        ("x = 1\n", r"^peer mine has no function bind\(x, y, stream\)$"),
        ("bind = 1\n", r"^peer mine has no function bind\(x, y, stream\)$"),
    ],
)
def test_broken_file_is_reported(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(PeerFailed, match=reason) as caught:
        peer(tmp_path, text).load()
    assert isinstance(caught.value, CheckFailed)


def test_unreadable_bytes_are_reported(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_bytes(b"'\xff'\n")
    (found,) = find_peers(tmp_path)
    assert found.description == ""
    with pytest.raises(PeerFailed, match=r"^peer mine raised SyntaxError"):
        found.load()


def test_raising_bind_is_reported_in_a_line(tmp_path: Path) -> None:
    bind = peer(tmp_path, binding(r"raise RuntimeError('two\nlines' + ' and on' * 1000)")).load()
    with pytest.raises(PeerFailed, match=r"^peer mine raised RuntimeError: two lines and on") as it:
        bind(X, Y, 0)
    assert len(str(it.value)) < 400


def test_raising_call_is_reported(tmp_path: Path) -> None:
    issue = peer(tmp_path, binding("return lambda: [][0]")).load()(X, Y, 0)
    with pytest.raises(PeerFailed, match=r"^peer mine raised IndexError: list index out of range$"):
        issue()


def test_the_package_is_told_with_its_version(tmp_path: Path) -> None:
    body = "def bind(x, y, stream): ..."
    (tmp_path / "known.py").write_text(f'PACKAGE = "numpy"\n{body}')
    (tmp_path / "unknown.py").write_text(f'PACKAGE = "no-such-package"\n{body}')
    (tmp_path / "untold.py").write_text(body)
    known, unknown, untold = find_peers(tmp_path)
    assert known.package() == f"numpy {np.__version__}"
    assert (unknown.package(), untold.package()) == ("no-such-package", "")
