"""The translation unit of a source: what the compiler gets, with all that it includes."""

from __future__ import annotations

import functools
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from kgen.cachedir import temporary_dir
from kgen.cpu.compiler import RUNTIME_DIR, Cxx, call_cxx, compile_failed
from kgen.include_paths import include_paths
from kgen.sources.source import Source

# The preprocessed unit's file.
UNIT = "unit.ii"
_WRAPPER = "wrapper.cpp"
_LINE_MARKER = re.compile(rb'^# \d+ "((?:[^"\\]|\\.)*)"', re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DYNAMIC_SHARED = re.compile(r"\bextern\s+__shared__\s[^;\[]*?(\w+)\s*\[\s*\]")


def wrapper_text(source: Source) -> str:
    """Return the translation unit that the compiler gets.

    It includes the source as a file of its own, so that every line number is the source's, and
    lists its kernels.
    """
    headers = ["kernel_table.h"] if source.spec.is_host else ["kernel_table.h", "cuda_on_cpu.h"]
    # By their paths: the runtime's folder must not be searched for what the source includes.
    lines = [f'#include "{RUNTIME_DIR / header}"' for header in headers]
    lines.append(f'#include "{source.filename}"')
    others = source.contract.shared_names if source.contract else ()
    lines += _dynamic_shared_lines(source.text, others)
    lines.append("const kgen_cpu::Kernel kgen_cpu::kernels[] = {")
    lines += [f"    KGEN_CPU_KERNEL({kernel})," for kernel in source.kernels]
    lines.append("};")
    lines.append(f"const int kgen_cpu::kernel_count = {len(source.kernels)};")
    return "\n".join(lines) + "\n"


def _dynamic_shared_lines(text: str, others: Iterable[str]) -> list[str]:
    names = dict.fromkeys([*_DYNAMIC_SHARED.findall(_COMMENT.sub(" ", text)), *others])
    if not names:
        return ["KGEN_CPU_NO_DYNAMIC_SHARED"]
    return ["KGEN_CPU_DYNAMIC_SHARED", *(f"KGEN_CPU_DYNAMIC_SHARED_NAME({name})" for name in names)]


def preprocessed(source: Source, cxx: Cxx, flags: list[str], wrapper: str) -> bytes:
    """Return the unit `wrapper`, which includes the source, as the compiler's preprocessor has it.

    So it has every file that is read: the compiler alone knows which branches hold, where headers
    are searched and what a macro names. Raises CompileFailed and MissingTool.
    """
    if source.path:
        # A copy is compiled, which may include the neighbours of the user's file.
        flags = [*flags, f"-I{source.path.absolute().parent}"]
    try:
        return _unit(cxx, (*flags,), (_WRAPPER, wrapper), (source.filename, source.text)).text()
    except _Rejected as rejected:
        raise compile_failed(source, cxx, str(rejected)) from None


class _Preprocessed:
    """What the preprocessor made of some files; it is asked again when one that it read changes."""

    def __init__(self, cxx: Cxx, flags: tuple[str, ...], *files: tuple[str, str]) -> None:
        self._cxx, self._flags, self._files = cxx, flags, files
        self._searched: dict[str, str] | None = None
        self._read: dict[Path, object] = {}

    def text(self) -> bytes:
        """Return the preprocessed text. Raises _Rejected and MissingTool."""
        if not self._is_current():
            self._text = self._preprocess()
            self._searched = include_paths()
            self._read = {path: _state(path) for path in _files_read(self._text)}
        return self._text

    def _is_current(self) -> bool:
        return self._searched == include_paths() and all(
            _state(path) == state for path, state in self._read.items()
        )

    def _preprocess(self) -> bytes:
        with tempfile.TemporaryDirectory(dir=temporary_dir(), prefix="kgen.") as folder:
            for name, text in self._files:
                Path(folder, name).write_bytes(text.encode())
            # Without -g1, which adds the folder's name, never the same, to what is made of it.
            arguments = [*self._flags, "-g0", "-E", _WRAPPER, "-o", UNIT]
            if messages := call_cxx(self._cxx, arguments, Path(folder)):
                raise _Rejected(messages)
            return Path(folder, UNIT).read_bytes()


# Checks build a source for every shape.
_unit = functools.lru_cache(maxsize=16)(_Preprocessed)


def _files_read(text: bytes) -> Iterable[Path]:
    """Return the files of a preprocessed text's line markers, but for those beside it."""
    for name in dict.fromkeys(_LINE_MARKER.findall(text)):
        path = Path(os.fsdecode(name.decode("unicode_escape").encode("latin-1")))
        if path.is_absolute():
            yield path


def _state(path: Path) -> object:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


class _Rejected(Exception):
    """What the preprocessor says of a source that it rejects."""


def write_unit(source: Source, unit: bytes, folder: Path) -> None:
    """Put a preprocessed unit into a folder, and the source, of which messages show lines."""
    (folder / source.filename).write_bytes(source.text.encode())
    (folder / UNIT).write_bytes(unit)
