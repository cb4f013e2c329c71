"""From a source to an executable that runs it, through the cache."""

from __future__ import annotations

import functools
from pathlib import Path

from kgen.cache import KEY_LETTERS, Entry, digest, made_file
from kgen.cachedir import cache_dir
from kgen.cpu.compiler import (
    BOUNDS_FLAGS,
    LINK_FLAGS,
    OBSERVED_LINK_FLAGS,
    OBSERVING_FLAGS,
    RUNTIME_DIR,
    RUNTIME_FLAGS,
    Cxx,
    call_cxx,
    compile_failed,
    describe_cxx,
    find_cxx,
    kernel_flags,
    observing_flags,
)
from kgen.cpu.unit import UNIT, preprocessed, wrapper_text, write_unit
from kgen.errors import CompileFailed
from kgen.sources.source import Source


def build(source: Source, observing: bool = False) -> Path:
    """Return the executable for `source`, compiling it unless it is cached.

    With `observing`, every access calls the runtime (kgen/cpu/observe.py), which takes GCC.
    The key covers what the compiler's preprocessor makes of the source, so every file that it
    includes, the runtime, the compiler and its flags.
    Raises CompileFailed when the compiler rejects the source, MissingTool when there is none.
    """
    cxx = find_cxx()
    flags = [*kernel_flags(cxx)]
    link_flags = [*LINK_FLAGS]
    if observing:
        flags += observing_flags(cxx)
        link_flags += OBSERVED_LINK_FLAGS
    runtime = _build_runtime(cxx, observing)
    if source.contract and not observing:
        flags += BOUNDS_FLAGS
    unit = preprocessed(source, cxx, flags, wrapper_text(source))
    key = digest(unit, runtime.name, *flags, *link_flags)

    def compile_and_link(target: Path) -> None:
        write_unit(source, unit, target.parent)
        for arguments in (
            [*flags, "-c", UNIT, "-o", "kernel.o"],
            ["kernel.o", str(runtime), *link_flags, "-o", target.name],
        ):
            if messages := call_cxx(cxx, arguments, target.parent):
                raise compile_failed(source, cxx, messages)

    return made_file(entry_of(source.stem, key), compile_and_link)


def _build_runtime(cxx: Cxx, observing: bool) -> Path:
    """Return the runtime as an object file, whose name stands for all that it was made from."""
    folders = [RUNTIME_DIR, RUNTIME_DIR / "observe"] if observing else [RUNTIME_DIR]
    flags = [*RUNTIME_FLAGS, *OBSERVING_FLAGS, f"-I{RUNTIME_DIR}"] if observing else RUNTIME_FLAGS
    text = "".join(_text_of(folder) for folder in folders)
    key = digest(text, str(cxx), describe_cxx(cxx), *flags)

    def compile_runtime(target: Path) -> None:
        # As one unit: the calls between its files are inlined, and it compiles in half the time.
        parts = [part for folder in folders for part in sorted(folder.glob("[!.]*.cpp"))]
        unit = "".join(f'#include "{part}"\n' for part in parts)
        (target.parent / "runtime.cpp").write_text(unit, encoding="utf-8")
        arguments = [*flags, "-c", "runtime.cpp", "-o", target.name]
        if messages := call_cxx(cxx, arguments, target.parent):
            raise CompileFailed(
                f"{cxx} cannot compile the runtime of the CPU executor:\n{messages}"
            )

    return made_file(entry_of("runtime", key, ".o"), compile_runtime)


@functools.cache
def _text_of(folder: Path) -> str:
    files = sorted([*folder.glob("[!.]*.h"), *folder.glob("[!.]*.cpp")])
    return "".join(f"{file.name}\n{file.read_text(encoding='utf-8')}" for file in files)


def entry_of(stem: str, key: str, ending: str = "") -> Entry:
    """Return the place in the cache of what is made for the CPU."""
    return Entry(cache_dir("cpu"), f"{stem}-{key[:KEY_LETTERS]}{ending}", key)
