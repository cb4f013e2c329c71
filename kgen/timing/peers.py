"""Finds the peers, other people's softmaxes, each a plug-in file with a function `bind`.

bench/peers/README.md is the contract of such a file.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import importlib.metadata
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import kgen
from kgen.errors import CheckFailed, KgenError, MissingTool, UsageError

# Characters that are told of another package's exception: some go on for pages.
MAX_MESSAGE = 300


class PeerFailed(CheckFailed):
    """A plug-in is broken; the message names it and the exception that came out of it."""


class DeviceMatrix(Protocol):
    """A matrix of rows x cols in device memory, without gaps, as a plug-in sees it."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    def dtype(self) -> str:
        """The type of its elements: float32, float16, bfloat16 or float64."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The address and layout, as CuPy, PyTorch and Numba read them.

        Its `typestr` has the right number of bytes; it cannot tell that an element is a bfloat16.
        """


# The matrices x and y and the handle of a CUDA stream, to what issues one softmax there.
Bind = Callable[[DeviceMatrix, DeviceMatrix, int], Callable[[], object]]


@dataclass(frozen=True)
class Peer:
    """The plug-in file at `path`; `description` is '' where the file cannot be read as Python."""

    name: str
    description: str
    path: Path

    def load(self) -> Bind:
        """Import the file and return its `bind`, once a process.

        Loading, the `bind` it returns and what that returns raise MissingTool where a module or
        library is missing, the errors of kgen that the plug-in itself raises (UsageError for a
        shape that it refuses), and PeerFailed for any other exception.
        """
        with self._reporting():
            bind = getattr(_import(self.path), "bind", None)
        if not callable(bind):
            raise PeerFailed(f"peer {self.name} has no function bind(x, y, stream)")
        return functools.partial(self._bind, bind)

    def package(self) -> str:
        """Return the package that the plug-in times, with its version: `torch 2.11.0`.

        It is the distribution that the file names in PACKAGE; '' where it names none that is known.
        """
        with self._reporting():
            name = getattr(_import(self.path), "PACKAGE", "")
        try:
            return f"{name} {importlib.metadata.version(name)}" if name else ""
        except importlib.metadata.PackageNotFoundError:
            return str(name)

    def _bind(
        self, bind: Bind, x: DeviceMatrix, y: DeviceMatrix, stream: int
    ) -> Callable[[], object]:
        with self._reporting():
            issue = bind(x, y, stream)

        def issue_reporting() -> object:
            with self._reporting():
                return issue()

        return issue_reporting

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except KgenError:
            raise
        except ModuleNotFoundError as error:
            raise MissingTool(f"no module named {error.name}") from None
        except ImportError as error:
            raise MissingTool(_in_a_line(error)) from None
        except (Exception, SystemExit) as error:
            told = f"{type(error).__name__}: {_in_a_line(error)}".rstrip(": ")
            raise PeerFailed(f"peer {self.name} raised {told}") from None


def find_peers(folder: Path | None = None) -> list[Peer]:
    """Return the peers in a folder (by default kgen's own), by name; none of them is imported.

    A peer is a `.py` file with a name that does not start with `_`. Raises UsageError when there is
    no such folder.
    """
    folder = folder or peer_dir()
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}; name one that holds plug-ins of peers")
    paths = sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))
    return [Peer(path.stem, _description(path), path.resolve()) for path in paths]


@functools.cache
def peer_dir() -> Path:
    """Return kgen's own peers: inside an installed package, in bench/ of a checkout."""
    package = Path(kgen.__file__).parent
    inside = package / "bench_peers"
    return inside if inside.is_dir() else package.parent / "bench" / "peers"


def _description(path: Path) -> str:
    try:
        text = ast.get_docstring(ast.parse(path.read_bytes())) or ""
    except (OSError, SyntaxError, ValueError):
        return ""
    return text.partition("\n")[0]


def _import(path: Path) -> ModuleType:
    """Import a plug-in as a module of a package of its folder.

    So it can say `from ._helper import f`, and a plug-in called `torch` hides no `import torch`.
    """
    package = "kgen_peers_" + hashlib.sha256(bytes(path.parent)).hexdigest()[:8]
    if package not in sys.modules:
        made = ModuleType(package)
        made.__path__ = [str(path.parent)]
        sys.modules[package] = made
    importlib.invalidate_caches()
    return importlib.import_module(f"{package}.{path.stem}")


def _in_a_line(error: BaseException) -> str:
    return textwrap.shorten(str(error), MAX_MESSAGE, placeholder=" ...")
