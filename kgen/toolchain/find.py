"""Finds the CUDA programs: a named one, PATH, an installed toolkit, NVIDIA's wheels."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kgen.errors import MissingTool
from kgen.files import named_path
from kgen.machine_trouble import require_no_trouble
from kgen.processes import run
from kgen.text import install_hint
from kgen.toolchain.added_flags import VARIABLES

INSTALL_HINT = install_hint("nvcc")
_DEFAULT_TOOLKIT = Path("/usr/local/cuda")


@dataclass(frozen=True)
class Tool:
    """A CUDA program that runs on this machine.

    `version` is like `13.0.88`; `found_by` says where it was found (`PATH`, `$CUDA_HOME`, ...);
    `banner` is all it says of itself, the build included.
    """

    path: Path
    version: str
    found_by: str
    banner: str


def find_nvcc() -> Tool:
    """Return the first nvcc that runs: $KGEN_NVCC, PATH, $CUDA_HOME, $CUDA_PATH, the default
    toolkit folder, then NVIDIA's wheels. Raises MissingTool if there is none.
    """
    return _find("nvcc")


def find_disassembler() -> Tool:
    """Return the first nvdisasm that runs, searched like nvcc ($KGEN_NVDISASM names one).

    It reads cubins by itself; cuobjdump would only call it. Raises MissingTool if there is none.
    """
    return _find("nvdisasm")


def _find(name: str) -> Tool:
    variable = f"KGEN_{name.upper()}"
    if named := os.environ.get(variable):
        found = shutil.which(str(named_path(named)))
        if found and (tool := probe(Path(found), f"${variable}")):
            return tool
        raise MissingTool(
            f"{variable}={named} is not a {name} that runs; name a program there, without "
            "arguments, or unset the variable"
        )
    for path, found_by in _candidates(name):
        if tool := probe(path, found_by):
            return tool
    raise MissingTool(
        f"no {name} on PATH, under $CUDA_HOME, under {_DEFAULT_TOOLKIT} or among the installed "
        f"wheels; get one with {INSTALL_HINT} or name one in {variable}"
    )


def named_by_user(name: str) -> Iterator[tuple[Path, str]]:
    """Yield where a program may be by the user's environment: PATH, $CUDA_HOME, $CUDA_PATH."""
    if on_path := shutil.which(name):
        yield Path(on_path), "PATH"
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if root := os.environ.get(variable):
            yield Path(root) / "bin" / name, f"${variable}"


def _candidates(name: str) -> Iterator[tuple[Path, str]]:
    yield from named_by_user(name)
    yield _DEFAULT_TOOLKIT / "bin" / name, str(_DEFAULT_TOOLKIT)
    wheels = importlib.util.find_spec("nvidia")
    for folder in (wheels and wheels.submodule_search_locations) or ():
        yield Path(folder) / "cu13" / "bin" / name, "NVIDIA's wheels"


def probe(path: Path, found_by: str, version_line: str = r"\bV(\d+\.\d+\.\d+)") -> Tool | None:
    """Return the tool at `path` if it runs and tells a version; a broken one is passed over."""
    try:
        banner = _banner(path.absolute(), path.stat().st_mtime_ns)
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(version_line, banner, re.MULTILINE)
    return version and Tool(path.absolute(), version[1], found_by, banner)


@functools.cache
def _banner(path: Path, changed_ns: int) -> str:
    return ask(path, "--version")


def ask(path: Path, question: str) -> str:
    """Return what a CUDA program prints for `--version` and its like.

    Flags that the user adds to every nvcc call have no say in this. Raises OSError or
    SubprocessError if the program does not answer, MachineTrouble when the machine is why.
    """
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    ran = run([path, question], env=environment, timeout_s=60)
    if ran.returncode:
        require_no_trouble(path.name, ran.returncode, ran.stderr)
        ran.check_returncode()
    return ran.stdout
