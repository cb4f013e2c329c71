"""Compiles sources to cubins with nvcc, through the cache."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kgen.cachedir import cache_dir
from kgen.errors import CompileFailed, MissingTool, UsageError
from kgen.files import write_atomically
from kgen.toolchain.binary import Binary, KernelResources
from kgen.toolchain.cache import Entry, digest, digest_of_files
from kgen.toolchain.find import Tool, ask, find_nvcc
from kgen.toolchain.options import CompileOptions
from kgen.toolchain.ptxas import parse_resources, warnings_of
from kgen.toolchain.source import Compilable

# Variables that change what nvcc and the host compiler under it do with the same command line.
_ENVIRONMENT = (
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "NVCC_CCBIN",
    "CPATH",
    "CPLUS_INCLUDE_PATH",
)
_DEFAULT_OPTIONS = CompileOptions()


def compile_cubin(
    source: Compilable, arch: str, options: CompileOptions = _DEFAULT_OPTIONS
) -> Binary:
    """Return the binary of `source` for `arch` (`sm_90`), compiled now or taken from the cache.

    Raises CompileFailed with nvcc's own words if it rejects the source or the source lacks one of
    its kernels, UsageError for an architecture that this nvcc has not or a source for the host,
    MissingTool if there is no nvcc or no C++ compiler for it.
    """
    nvcc = find_nvcc()
    _check_request(source, arch, nvcc)
    flags = _flags(source, arch, options)
    entry = _entry(source, flags, nvcc)
    return entry.load(arch) or _compile(source, arch, [str(nvcc.path), *flags], entry)


def compile_many(
    sources: Iterable[Compilable], arch: str, options: CompileOptions = _DEFAULT_OPTIONS
) -> list[Binary | CompileFailed]:
    """Compile several sources at once, as many as there are processors; results in their order.

    A rejected source yields its CompileFailed and leaves the others alone; UsageError and
    MissingTool, which concern all of them, are raised.
    """

    def attempt(source: Compilable) -> Binary | CompileFailed:
        try:
            return compile_cubin(source, arch, options)
        except CompileFailed as failure:
            return failure

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(attempt, sources))


def supported_archs(nvcc: Tool) -> tuple[str, ...]:
    """Return the architectures this nvcc compiles for, oldest first: `sm_75`, ..., `sm_121`."""
    return _supported_archs(nvcc.path)


@functools.cache
def _supported_archs(nvcc: Path) -> tuple[str, ...]:
    names = re.findall(r"^sm_\d+$", ask(nvcc, "--list-gpu-code"), re.MULTILINE)
    return tuple(sorted(names, key=lambda name: int(name.removeprefix("sm_"))))


def _check_request(source: Compilable, arch: str, nvcc: Tool) -> None:
    if source.is_host:
        raise UsageError(f"{_shown_name(source)} is for the host; there is no cubin of it")
    if arch not in (known := supported_archs(nvcc)):
        raise UsageError(
            f"nvcc {nvcc.version} does not compile for {arch!r}; choose one of {', '.join(known)}"
        )


def _flags(source: Compilable, arch: str, options: CompileOptions) -> list[str]:
    flags = ["-cubin", f"-arch={arch}", "-Xptxas", "-v", *options.flags()]
    if source.path:
        # The user's file is compiled as a copy in the cache but may include its neighbours.
        flags += ["-I", str(source.path.absolute().parent)]
    return flags


def _entry(source: Compilable, flags: list[str], nvcc: Tool) -> Entry:
    environment = [os.environ.get(name, "") for name in _ENVIRONMENT]
    compiler = [str(nvcc.path), nvcc.banner, *environment]
    key = digest([source.filename, source.text, *source.kernels, "", *flags, "", *compiler])
    return Entry(cache_dir("cubin").absolute() / key[:32], key, source.stem)


def _compile(source: Compilable, arch: str, command: list[str], entry: Entry) -> Binary:
    _make_folder(entry.folder)
    # The source stays beside the cubin, where profilers look for the lines of -lineinfo.
    file = entry.folder / source.filename
    write_atomically(file, source.text)
    with tempfile.TemporaryDirectory(dir=entry.folder, prefix=".nvcc.") as scratch:
        cubin, depends = Path(scratch, "cubin"), Path(scratch, "depends")
        products = ["-o", str(cubin), "-MMD", "-MF", str(depends)]
        output = _run([*command, *products, str(file)], source, file)
        image = _read_product(cubin, source, output)
        headers = _headers(depends, file)
    headers_digest = digest_of_files(headers)
    kernels = _in_order(parse_resources(output), source)
    binary = Binary(entry.cubin, image, arch, kernels, warnings_of(output))
    entry.store(binary, headers, headers_digest)
    return binary


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"the cache folder {folder} cannot be made ({error.strerror}); name another place in "
            "KGEN_CACHE_DIR"
        ) from None


def _run(command: list[str], source: Compilable, file: Path) -> str:
    """Return what nvcc says, with the name of the file that the user knows."""
    # A fixed folder, so that relative paths in NVCC_APPEND_FLAGS mean the same in every run.
    ran = subprocess.run(
        command,
        cwd=file.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    output = ran.stdout.replace(str(file), _shown_name(source))
    if "Failed to preprocess host compiler properties" in output:
        raise MissingTool(
            f"nvcc found no C++ compiler that works ({' '.join(output.split())}); install g++, or "
            "name one in NVCC_CCBIN"
        )
    if ran.returncode != 0:
        raise CompileFailed(f"nvcc rejected {_shown_name(source)}:\n{warnings_of(output)}")
    return output


def _read_product(cubin: Path, source: Compilable, output: str) -> bytes:
    try:
        return cubin.read_bytes()
    except FileNotFoundError:
        raise CompileFailed(
            f"nvcc wrote no cubin for {_shown_name(source)}, see NVCC_PREPEND_FLAGS and "
            f"NVCC_APPEND_FLAGS:\n{output}"
        ) from None


def _headers(depends: Path, file: Path) -> list[str]:
    """Return the headers of a make rule `cubin : file header ...` (nvcc leaves system's out)."""
    rule = depends.read_text(encoding="utf-8", errors="surrogateescape").replace("\\\n", " ")
    prerequisites = re.findall(r"(?:\\.|\S)+", rule.partition(" : ")[2])
    paths = [re.sub(r"\\(.)", r"\1", path) for path in prerequisites]
    return [str(file.parent / path) for path in paths if path != str(file)]


def _in_order(
    kernels: tuple[KernelResources, ...], source: Compilable
) -> tuple[KernelResources, ...]:
    by_name = {kernel.kernel: kernel for kernel in kernels}
    if absent := [name for name in source.kernels if name not in by_name]:
        raise CompileFailed(
            f'{_shown_name(source)} defines no extern "C" kernel {", ".join(absent)}; it defines '
            f"{', '.join(by_name) or 'none'}"
        )
    return tuple(by_name[name] for name in source.kernels)


def _shown_name(source: Compilable) -> str:
    return str(source.path or source.filename)
