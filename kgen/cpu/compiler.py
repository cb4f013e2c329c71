"""The system's C++ compiler: finding it, calling it, and passing on what it says."""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from kgen.errors import CompileFailed, MissingTool
from kgen.files import absolute_program, named_path
from kgen.include_paths import include_paths
from kgen.machine_trouble import require_no_trouble
from kgen.processes import run
from kgen.sources.source import Source
from kgen.text import with_name

RUNTIME_DIR = Path(__file__).parent / "runtime"

# What a source may include of CUDA; each header includes what it needs of the runtime.
CUDA_HEADERS = RUNTIME_DIR / "include"

# No PIE: addresses in reports are then those of the debug information, and shared memory (thread-
# local storage) is addressed directly.
_COMMON_FLAGS = ("-std=gnu++17", "-fno-pie")
RUNTIME_FLAGS = (*_COMMON_FLAGS, "-O3")
KERNEL_FLAGS = (
    *_COMMON_FLAGS,
    f"-I{CUDA_HEADERS}",
    "-O2",
    "-g1",  # the line of a crash; in DWARF 5 GCC and binutils number files differently
    "-gdwarf-4",
    "-fstack-clash-protection",  # an overflow meets the guard page, however large the frame
    "-w",  # warnings are nvcc's business
    "-fno-strict-aliasing",  # as CUDA code expects that reads floats through a float4 pointer
    "-ffp-contract=off",  # the same results on every CPU
    "-fsanitize=alignment",
    "-fno-sanitize-recover=alignment",
)
# What g++ links by itself, and gcc does not.
LINK_LIBRARIES = ("-lstdc++", "-lm")
LINK_FLAGS = ("-no-pie", "-pthread", *LINK_LIBRARIES)

# For other people's kernels: an index past the end of an array, of a thread's own above all, which
# observing does not see.
BOUNDS_FLAGS = ("-fsanitize=bounds", "-fno-sanitize-recover=bounds")

# For executables that observe: behind the flags above, and for runtime and kernel alike.
OBSERVING_FLAGS = ("-DKGEN_CPU_OBSERVING",)
# Calls a function in front of every access (runtime/observe/hooks.cpp).
OBSERVED_KERNEL_FLAGS = (
    *OBSERVING_FLAGS,
    "-fsanitize=thread",
    # One access of the source is to stay one instruction of the same width: what would split
    # accesses, or copy them to where only some of a warp's lanes pass, is left out.
    "-O1",
    "-fno-tree-sra",
    "-fno-tree-ch",
    "-fno-thread-jumps",
    "-fno-split-paths",
    "-fno-crossjumping",
)
OBSERVED_LINK_FLAGS = ("-Wl,--wrap=expf,--wrap=exp2f,--wrap=exp,--wrap=exp2",)

_MAX_LINES = 40
_INCLUSION = re.compile(r"In file included from|\s+from .*[:,]$")
_UNDECLARED = re.compile(
    r"'(\w+)' was not declared"
    r"|there are no arguments to '(\w+)' that depend"
    r"|use of undeclared identifier '(\w+)'"
)
_HEADER_OF = (
    (re.compile(r"__(sync|shfl|ballot|any|all|match|reduce|activemask)"), "cuda_sync.h"),
    (re.compile(r"atomic|__(ld|st|threadfence)"), "cuda_memory.h"),
    (re.compile(r"make_"), "cuda_types.h"),
    (re.compile(r"__"), "cuda_math.h"),
)


@dataclass(frozen=True)
class Cxx:
    """A C++ compiler: the words that a command of it begins with, files by absolute paths."""

    command: tuple[str, ...]

    @property
    def name(self) -> str:
        """What messages call it: the command without folders."""
        return " ".join(Path(word).name for word in self.command)

    def __str__(self) -> str:
        return shlex.join(self.command)


def find_cxx() -> Cxx:
    """Return the C++ compiler: the environment variable CXX, else g++, else clang++.

    CXX is a program, or one with arguments (`ccache g++`), written as for a shell. Raises
    MissingTool when there is none.
    """
    chosen = os.environ.get("CXX", "").strip()
    for words in ([chosen], _words(chosen)) if chosen else (["g++"], ["clang++"]):
        if words and (program := shutil.which(str(named_path(words[0])))):
            return Cxx(tuple(map(absolute_program, [program, *words[1:]])))
    if chosen:
        raise MissingTool(f"CXX names {chosen}, which is not a program: set it to a C++ compiler")
    raise MissingTool("no C++ compiler found: install g++ or clang++, or set CXX to one")


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # a quote that does not end
        return []


@functools.cache
def describe_cxx(cxx: Cxx) -> str:
    """Return the compiler's own description of itself, version included.

    Raises MissingTool for a program that has none: it is no compiler.
    """
    try:
        ran = run([*cxx.command, "--version"])
    except OSError as error:
        raise MissingTool(f"{cxx} cannot be run ({error.strerror}): set CXX to g++") from None
    require_no_trouble(cxx.name, ran.returncode, ran.stderr)
    said = ran.stdout
    if not any(name in said for name in ("Free Software Foundation", "GCC", "clang")):
        raise MissingTool(f"{cxx} is neither g++ nor clang++: set CXX to one of them")
    return said


def kernel_flags(cxx: Cxx) -> tuple[str, ...]:
    """Return the flags for kernels, with what only this compiler needs."""
    if "clang" in describe_cxx(cxx):
        return KERNEL_FLAGS
    # `extern __shared__` arrays have no initialisers to call before the first access.
    return (*KERNEL_FLAGS, "-fno-extern-tls-init")


def observing_flags(cxx: Cxx) -> tuple[str, ...]:
    """Return the flags that make a kernel an observed one, to follow the usual ones.

    Raises MissingTool for a compiler other than GCC.
    """
    if "clang" in describe_cxx(cxx):
        raise MissingTool(
            f"{cxx} is Clang, and kernels are observed with GCC's instrumentation only: "
            "install g++, or set CXX to it"
        )
    return OBSERVED_KERNEL_FLAGS


def call_cxx(cxx: Cxx, arguments: list[str], folder: Path) -> str:
    """Run the compiler in `folder`; return its messages when it fails, else an empty string.

    Raises MachineTrouble when it lacks memory or space, or is killed.
    """
    environment = {**os.environ, **include_paths(), "LC_ALL": "C"}
    ran = run([*cxx.command, *arguments], cwd=folder, env=environment)
    if not ran.returncode:
        return ""
    require_no_trouble(cxx.name, ran.returncode, ran.stderr)
    return ran.stderr or "no message"


def compile_failed(source: Source, cxx: Cxx, messages: str) -> CompileFailed:
    """Return the error for a rejected source, in the compiler's words and the user's file name."""
    lines = [line for line in messages.splitlines() if not _INCLUSION.match(line)]
    text = with_shown_name(source, "\n".join(lines[:_MAX_LINES]))
    hints = [*_missing_intrinsics(messages), *_inline_assembly(source.text)]
    return CompileFailed("\n".join([f"{source.shown_name}: {cxx.name} rejects it:", text, *hints]))


def with_shown_name(source: Source, text: str) -> str:
    """Return `text` with the user's name of the file that was compiled."""
    return with_name(text, source.filename, source.shown_name)


def _missing_intrinsics(messages: str) -> list[str]:
    names = dict.fromkeys(next(filter(None, match)) for match in _UNDECLARED.findall(messages))
    headers = {name: header for name in names if (header := _header_for(name))}
    return [
        f"the CPU executor does not know {name}: if it is CUDA's, add it to {RUNTIME_DIR / header}"
        for name, header in headers.items()
    ]


def _inline_assembly(text: str) -> list[str]:
    found = re.search(r"\basm\b(?=[^;]*\()", text)
    if not found:
        return []
    line = text.count("\n", 0, found.start()) + 1
    return [f"the CPU executor runs no PTX: line {line} has some (nvcc takes it)"]


def _header_for(name: str) -> str | None:
    return next((header for pattern, header in _HEADER_OF if pattern.match(name)), None)
