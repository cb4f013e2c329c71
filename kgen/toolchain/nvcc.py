"""Compiles a source to a cubin with nvcc, through the cache."""

from __future__ import annotations

import functools
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from subprocess import STDOUT, SubprocessError, TimeoutExpired

from kgen.cache import KEY_LETTERS, Entry, digest
from kgen.cachedir import cache_dir, temporary_dir, writing_cache
from kgen.errors import CompileFailed, MachineTrouble, MissingTool, UsageError
from kgen.files import absolute_program, replace_file
from kgen.include_paths import include_paths
from kgen.limits import arch_number
from kgen.machine_trouble import require_no_trouble
from kgen.processes import run
from kgen.toolchain.added_flags import VARIABLES, require_no_contradiction
from kgen.toolchain.binary import Binary, KernelResources
from kgen.toolchain.cache import digest_of_headers, load_binary, store_binary
from kgen.toolchain.find import Tool, ask, find_nvcc
from kgen.toolchain.headers import NEIGHBOURS, headers_of, link_neighbours, with_users_names
from kgen.toolchain.machine_code import arch_of, is_whole
from kgen.toolchain.options import CompileOptions
from kgen.toolchain.ptxas import parse_resources, warnings_of
from kgen.toolchain.source import Compilable

# Variables that change what nvcc and the host compiler under it do with the same command line.
_ENVIRONMENT = (*VARIABLES, "NVCC_CCBIN", "CPATH", "CPLUS_INCLUDE_PATH")
_DEFAULT_OPTIONS = CompileOptions()


# Far beyond what the slowest kernel takes on a busy machine: it ends an nvcc that hangs.
_TIME_LIMIT_S = 300.0


@dataclass(frozen=True)
class Compilation:
    """A checked request: `command` is nvcc and its flags, `entry` where the binary is kept."""

    source: Compilable
    arch: str
    command: tuple[str, ...]
    entry: Entry


@dataclass(frozen=True)
class Product:
    """What a run of nvcc yields: the cubin, its messages, the headers that were read."""

    image: bytes
    output: str
    headers: list[str]
    headers_digest: str


def compile_cubin(
    source: Compilable, arch: str, options: CompileOptions = _DEFAULT_OPTIONS
) -> Binary:
    """Return the binary of `source` for `arch` (`sm_90`), compiled now or taken from the cache.

    Raises CompileFailed with nvcc's own words if it rejects the source, takes minutes for it or
    the source lacks one of its kernels, UsageError for an architecture that this nvcc has not or a
    source for the host, MissingTool if there is no nvcc or no C++ compiler for it.
    """
    job = prepare(source, arch, options)
    return load_binary(job.entry, arch) or compile_alone(job)


def prepare(source: Compilable, arch: str, options: CompileOptions) -> Compilation:
    """Check a request and return what to do for it. Raises UsageError and MissingTool."""
    if source.is_host:
        raise UsageError(
            f"{source.shown_name} is plain C++ for the host, of which nvcc makes no cubin: "
            "compile it with a C++ compiler, or name a version other than cpu"
        )
    nvcc = find_nvcc()
    _check_request(source, arch, nvcc)
    flags = _flags(source, arch, options)
    require_no_contradiction(flags)
    return Compilation(source, arch, (str(nvcc.path), *flags), _entry(source, flags, nvcc))


def compile_alone(job: Compilation) -> Binary:
    """Compile a source by itself, whatever the cache has. Raises what `compile_cubin` does."""
    source, entry = job.source, job.entry
    # The source stays beside the cubin, where profilers look for the lines of -lineinfo.
    file = entry.folder / source.filename
    if '"' in str(file) and "-lineinfo" in job.command:
        raise MissingTool(
            f"nvcc cannot tell the lines of a file in {entry.folder}, whose name has a quote in "
            "it: set KGEN_CACHE_DIR to another place"
        )
    with writing_cache(entry.folder):
        replace_file(file, source.text)
        link_neighbours(source, entry.folder)
    product = run_nvcc(job, file, source.shown_name, _TIME_LIMIT_S)
    kernels = kernels_of(source, parse_resources(product.output))
    log = warnings_of(product.output)
    binary = Binary(entry.path, product.image, job.arch, kernels, log)
    with writing_cache(entry.folder):
        replace_file(binary.path, binary.image)
        store_binary(entry, binary, product.headers, product.headers_digest)
    return binary


def supported_archs(nvcc: Tool) -> tuple[str, ...]:
    """Return the architectures this nvcc compiles for, oldest first: `sm_75`, ..., `sm_121`."""
    return _supported_archs(nvcc.path)


@functools.cache
def _supported_archs(nvcc: Path) -> tuple[str, ...]:
    temporary_dir()  # where nvcc makes a file even for this
    try:
        answer = ask(nvcc, "--list-gpu-code")
    except (OSError, SubprocessError) as error:
        raise MissingTool(f"{nvcc} does not say what it compiles for: {error}") from None
    names = re.findall(r"^sm_\d+$", answer, re.MULTILINE)
    return tuple(sorted(names, key=arch_number))


def _check_request(source: Compilable, arch: str, nvcc: Tool) -> None:
    if arch not in (known := supported_archs(nvcc)):
        raise UsageError(
            f"nvcc {nvcc.version} does not compile for {arch!r}; choose one of {', '.join(known)}"
        )
    if source.requires in known and known.index(arch) < known.index(source.requires):
        raise UsageError(
            f"{source.shown_name} uses what {arch} lacks; compile it for {source.requires} or "
            f"newer, or ask kgen explain with --arch {arch} for what is near"
        )


def _flags(source: Compilable, arch: str, options: CompileOptions) -> list[str]:
    flags = ["-cubin", f"-arch={arch}", "-Xptxas", "-v", *options.flags()]
    if source.path:
        # The user's file is compiled as a copy in the cache but may include its neighbours.
        flags += ["-I", NEIGHBOURS]
    return flags


def _entry(source: Compilable, flags: list[str], nvcc: Tool) -> Entry:
    environment = _environment()
    compiler = [str(nvcc.path), nvcc.banner, *(environment.get(name, "") for name in _ENVIRONMENT)]
    neighbours = str(source.path.absolute().parent) if source.path else ""
    text = [source.filename, source.text, neighbours, *source.kernels]
    key = digest(*text, "", *flags, "", *compiler)
    return Entry(cache_dir("cubin") / key[:KEY_LETTERS], f"{source.stem}.cubin", key)


def _environment() -> dict[str, str]:
    """Return nvcc's environment, in which paths mean what they mean where the user is."""
    environment = {**os.environ, **include_paths()}
    if host_compiler := environment.get("NVCC_CCBIN"):
        environment["NVCC_CCBIN"] = absolute_program(host_compiler)
    return environment


def run_nvcc(job: Compilation, file: Path, name: str, limit_s: float) -> Product:
    """Compile a file as for `job` for at most `limit_s` seconds; messages call it by `name`.

    Raises CompileFailed when that yields no cubin, UsageError for one of another architecture,
    MissingTool when there is no C++ compiler, MachineTrouble when there is too little memory or
    space.
    """
    with (
        writing_cache(file.parent),
        tempfile.TemporaryDirectory(dir=file.parent, prefix=".nvcc.") as scratch,
    ):
        code, output = _run(job.command, file, Path(scratch), name, limit_s)
        output = with_users_names(output, file, name)
        _check_ending(code, output, name)
        image = _read_product(Path(scratch, "cubin"), name, output)
        _check_arch(image, job.arch, name)
        rule = Path(scratch, "depends").read_text(encoding="utf-8", errors="surrogateescape")
    headers = headers_of(rule, file)
    return Product(image, output, headers, digest_of_headers(headers))


def _run(
    command: tuple[str, ...], file: Path, scratch: Path, name: str, limit_s: float
) -> tuple[int, str]:
    """Return how nvcc ended and what it said.

    nvcc breaks at quotes, commas, `$` and backslashes in paths. So it runs in the file's folder, a
    fixed one, which paths in NVCC_APPEND_FLAGS may rely on, and knows all of them from there.
    """
    near = scratch.name
    (scratch / "tmp").symlink_to(temporary_dir())
    products = ["-o", f"{near}/cubin", "-MD", "-MF", f"{near}/depends", file.name]
    environment = {**_environment(), "TMPDIR": f"{near}/tmp"}
    where = {"cwd": file.parent, "env": environment}
    try:
        ran = run([*command, *products], timeout_s=limit_s, stderr=STDOUT, **where)
    except TimeoutExpired:
        raise CompileFailed(
            f"nvcc was stopped after {limit_s:g} s with {name}; unroll less in it"
        ) from None
    return ran.returncode, ran.stdout


def _check_ending(code: int, output: str, name: str) -> None:
    if "Failed to preprocess host compiler properties" in output:
        raise MissingTool(
            f"nvcc found no C++ compiler that works ({' '.join(output.split())}); install g++, or "
            "name one in NVCC_CCBIN"
        )
    if code != 0:
        require_no_trouble("nvcc", code, output)
        raise CompileFailed(f"nvcc rejected {name}:\n{warnings_of(output)}")


def _read_product(cubin: Path, name: str, output: str) -> bytes:
    try:
        image = cubin.read_bytes()
    except FileNotFoundError:
        raise CompileFailed(
            f"nvcc wrote no cubin for {name}, see NVCC_PREPEND_FLAGS and "
            f"NVCC_APPEND_FLAGS:\n{output}"
        ) from None
    if not is_whole(image):
        raise MachineTrouble(f"nvcc wrote a part of {name}'s cubin: free space in KGEN_CACHE_DIR")
    return image


def _check_arch(image: bytes, asked: str, name: str) -> None:
    if (found := arch_of(image)) not in (asked, None):
        raise UsageError(
            f"nvcc compiled {name} for {found}, though {asked} was asked for: look for what adds "
            "flags to it, such as a script around it or its nvcc.profile"
        )


def kernels_of(
    source: Compilable, kernels: tuple[KernelResources, ...]
) -> tuple[KernelResources, ...]:
    """Return those of the compiled kernels that are the source's, in its order.

    Raises CompileFailed when one of them is not there.
    """
    by_name = {kernel.kernel: kernel for kernel in kernels}
    if absent := [name for name in source.kernels if name not in by_name]:
        raise CompileFailed(
            f'{source.shown_name} defines no extern "C" kernel {", ".join(absent)}; it defines '
            f"{', '.join(by_name) or 'none'}"
        )
    return tuple(by_name[name] for name in source.kernels)
