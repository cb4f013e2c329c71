"""From a source to an executable that runs it, through the cache."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from kgen.cachedir import cache_dir
from kgen.cpu.cache import cached_file, content_key
from kgen.cpu.compiler import (
    LINK_FLAGS,
    OBSERVED_LINK_FLAGS,
    OBSERVING_FLAGS,
    RUNTIME_DIR,
    RUNTIME_FLAGS,
    call_cxx,
    compile_failed,
    describe_cxx,
    find_cxx,
    kernel_flags,
    observing_flags,
)
from kgen.errors import CompileFailed
from kgen.sources.source import Source

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DYNAMIC_SHARED = re.compile(r"\bextern\s+__shared__\s[^;\[]*?(\w+)\s*\[\s*\]")
_INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


def build(source: Source, observing: bool = False) -> Path:
    """Return the executable for `source`, compiling it unless it is cached.

    With `observing`, every access calls the runtime (kgen/cpu/observe.py), which takes GCC.
    The key covers the source and the files it includes, the runtime, the compiler and its flags.
    Raises CompileFailed when the compiler rejects the source, MissingTool when there is none.
    """
    cxx = find_cxx()
    flags = [*kernel_flags(cxx), *_include_flags(source)]
    link_flags = [*LINK_FLAGS]
    if observing:
        flags += observing_flags(cxx)
        link_flags += OBSERVED_LINK_FLAGS
    runtime = _build_runtime(cxx, observing)
    wrapper = wrapper_text(source)
    neighbours = _included_texts(source)
    key = content_key(source.text, *neighbours, "", wrapper, runtime.name, *flags, *link_flags)

    def compile_and_link(target: Path) -> None:
        (target.parent / source.filename).write_bytes(source.text.encode())
        (target.parent / "wrapper.cpp").write_text(wrapper, encoding="utf-8")
        for arguments in (
            [*flags, "-c", "wrapper.cpp", "-o", "kernel.o"],
            ["kernel.o", str(runtime), *link_flags, "-o", target.name],
        ):
            if messages := call_cxx(cxx, arguments, target.parent):
                raise compile_failed(source, cxx, messages)

    return cached_file(_folder() / f"{source.stem}-{key}", compile_and_link)


def wrapper_text(source: Source) -> str:
    """Return the translation unit that the compiler gets.

    It includes the source as a file of its own, so that every line number is the source's, and
    lists its kernels.
    """
    headers = ["kernel_table.h"] if source.spec.is_host else ["kernel_table.h", "cuda_on_cpu.h"]
    # By their paths: the runtime's folder must not be searched for what the source includes.
    lines = [f'#include "{RUNTIME_DIR / header}"' for header in headers]
    lines.append(f'#include "{source.filename}"')
    lines += _dynamic_shared_lines(source.text)
    lines.append("const kgen_cpu::Kernel kgen_cpu::kernels[] = {")
    lines += [f"    KGEN_CPU_KERNEL({kernel})," for kernel in source.kernels]
    lines.append("};")
    lines.append(f"const int kgen_cpu::kernel_count = {len(source.kernels)};")
    return "\n".join(lines) + "\n"


def _dynamic_shared_lines(text: str) -> list[str]:
    names = dict.fromkeys(_DYNAMIC_SHARED.findall(_COMMENT.sub(" ", text)))
    if not names:
        return ["KGEN_CPU_NO_DYNAMIC_SHARED"]
    return ["KGEN_CPU_DYNAMIC_SHARED", *(f"KGEN_CPU_DYNAMIC_SHARED_NAME({name})" for name in names)]


def _include_flags(source: Source) -> list[str]:
    """Let a user's file, of which a copy is compiled, include its neighbours."""
    return [f"-I{source.path.absolute().parent}"] if source.path else []


def _included_texts(source: Source) -> list[str]:
    """Return the texts of the neighbours that a user's file includes, and of theirs."""
    if not source.path:
        return []
    texts: dict[Path, str] = {}
    waiting = [(source.path.absolute().parent, source.text)]
    while waiting:
        folder, text = waiting.pop()
        for file in (folder / name for name in _INCLUDE.findall(text)):
            if file not in texts and file.is_file():
                texts[file] = file.read_text(encoding="utf-8", errors="replace")
                waiting.append((file.parent, texts[file]))
    return list(texts.values())


def _build_runtime(cxx: Path, observing: bool) -> Path:
    """Return the runtime as an object file, whose name stands for all that it was made from."""
    folders = [RUNTIME_DIR, RUNTIME_DIR / "observe"] if observing else [RUNTIME_DIR]
    flags = [*RUNTIME_FLAGS, *OBSERVING_FLAGS, f"-I{RUNTIME_DIR}"] if observing else RUNTIME_FLAGS
    text = "".join(_text_of(folder) for folder in folders)
    key = content_key(text, str(cxx), describe_cxx(cxx), *flags)

    def compile_runtime(target: Path) -> None:
        # As one unit: the calls between its files are inlined, and it compiles in half the time.
        parts = [part for folder in folders for part in sorted(folder.glob("*.cpp"))]
        unit = "".join(f'#include "{part}"\n' for part in parts)
        (target.parent / "runtime.cpp").write_text(unit, encoding="utf-8")
        arguments = [*flags, "-c", "runtime.cpp", "-o", target.name]
        if messages := call_cxx(cxx, arguments, target.parent):
            raise CompileFailed(
                f"{cxx} cannot compile the runtime of the CPU executor:\n{messages}"
            )

    return cached_file(_folder() / f"runtime-{key}.o", compile_runtime)


@functools.cache
def _text_of(folder: Path) -> str:
    files = sorted(folder.glob("*.[hc]*"))
    return "".join(f"{file.name}\n{file.read_text(encoding='utf-8')}" for file in files)


def _folder() -> Path:
    return cache_dir("cpu").absolute()
