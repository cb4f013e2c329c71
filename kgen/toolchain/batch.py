"""Compiles many sources fast: a few dozen in one translation unit, a unit on every processor.

Most of what nvcc takes for one of our kernels goes into starting and into reading CUDA's headers,
which a unit pays once. `nvcc a.cu b.cu --threads N` pays it for each file; to cut the unit's PTX up
and run ptxas on each kernel pays for starting ptxas each time. So the sources of a unit share one
cubin. `bench/compile_speed.py` compares this with calls of nvcc for one and for several files.

What comes out is the same as if each source had been compiled by itself: each is in a namespace of
its own, all of a unit include the same headers, and a unit is cut in halves and compiled again,
down to single sources if need be, unless nvcc is silent about it and its kernels stand alone. So
a message, an error or a hang is blamed on the source that it belongs to. What a namespace cannot
keep is overloading: a source's function would hide CUDA's of the same name, not stand beside it.
The templates have no such function.
"""

from __future__ import annotations

import functools
import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from kgen.cache import KEY_LETTERS, digest
from kgen.cachedir import cache_dir, writing_cache
from kgen.errors import CompileFailed, MachineTrouble
from kgen.files import replace_file
from kgen.processes import thread_pool
from kgen.toolchain.added_flags import added_flags
from kgen.toolchain.binary import Binary
from kgen.toolchain.cache import digest_of_files, load_binary, store_binary
from kgen.toolchain.machine_code import stands_alone
from kgen.toolchain.nvcc import Compilation, compile_alone, kernels_of, prepare, run_nvcc
from kgen.toolchain.options import CompileOptions
from kgen.toolchain.ptxas import parse_resources, warnings_of
from kgen.toolchain.source import Compilable

# More sources save less and less, and every one of them is loaded with the others' kernels.
MAX_SOURCES = 32
# Limits that an nvcc which does not hang keeps on a busy machine: for a unit, and each source.
_UNIT_LIMIT_S, _SOURCE_LIMIT_S = 60.0, 2.0

_DEFAULT_OPTIONS = CompileOptions()
_INCLUDE = re.compile(r"^#include <[\w./]+>\n", re.MULTILINE)
# Any other directive could reach into the sources that follow in the unit.
_OTHER_DIRECTIVE = re.compile(r"^[ \t]*#(?!include <[\w./]+>$|pragma unroll\b)", re.MULTILINE)

Result = Binary | CompileFailed | MachineTrouble


def compile_many(
    sources: Iterable[Compilable], arch: str, options: CompileOptions = _DEFAULT_OPTIONS
) -> list[Result]:
    """Compile several sources on all processors, through the cache; results in their order.

    A rejected source yields its CompileFailed, one that the machine lacks memory or the like for
    its MachineTrouble, and leaves the others alone; UsageError and MissingTool are raised. A user's
    file is compiled by itself, and so is everything where `options` ask for line numbers or the
    environment adds flags to nvcc's.
    """
    jobs = [prepare(source, arch, options) for source in sources]
    done: dict[str, Result] = {}
    missing: dict[str, Compilation] = {}
    digest_files = functools.cache(digest_of_files)
    for job in jobs:
        if binary := load_binary(job.entry, arch, digest_files):
            done[job.entry.key] = binary
        else:
            missing[job.entry.key] = job
    with thread_pool(os.cpu_count() or 1) as pool:
        for results in pool.map(_compile, _batches(missing.values())):
            done |= results
    return [done[job.entry.key] for job in jobs]


def _batches(jobs: Iterable[Compilation]) -> Iterator[list[Compilation]]:
    """Put jobs that may share a unit together, evenly over the processors."""
    alike: dict[tuple[str, ...], list[Compilation]] = defaultdict(list)
    for job in jobs:
        alike[_unit_of(job)].append(job)
    processors = os.cpu_count() or 1
    for group in alike.values():
        rounds = -(-len(group) // (processors * MAX_SOURCES))
        count = min(processors * rounds, len(group))
        for first in range(count):
            # Neighbours are often variants of one version; so each unit gets some of the slow.
            yield group[first::count]


def _unit_of(job: Compilation) -> tuple[str, ...]:
    """Return what the sources of one unit have in common; a source for itself has its key."""
    text = job.source.text
    may_share = not (
        job.source.path
        or "-lineinfo" in job.command
        or added_flags()
        or _OTHER_DIRECTIVE.search(text)
    )
    return (*job.command, *_INCLUDE.findall(text)) if may_share else (job.entry.key,)


def _compile(batch: list[Compilation]) -> dict[str, Result]:
    """Return the results of a batch by key."""
    try:
        if len(batch) > 1:
            binaries = _compile_together(batch)
            return {job.entry.key: binary for job, binary in zip(batch, binaries, strict=True)}
        return {batch[0].entry.key: compile_alone(batch[0])}
    except (CompileFailed, MachineTrouble) as failure:
        if len(batch) == 1:
            return {batch[0].entry.key: failure}
    middle = len(batch) // 2
    return _compile(batch[:middle]) | _compile(batch[middle:])


def _compile_together(batch: list[Compilation]) -> list[Binary]:
    """Compile sources in one unit. Raises CompileFailed when it must be cut."""
    folder = cache_dir("cubin") / "shared"
    with (
        writing_cache(folder),
        tempfile.TemporaryDirectory(dir=folder, prefix=".unit.") as scratch,
    ):
        file = Path(scratch, "unit.cu")
        file.write_text(_unit([job.source for job in batch]), encoding="utf-8")
        limit_s = _UNIT_LIMIT_S + _SOURCE_LIMIT_S * len(batch)
        product = run_nvcc(batch[0], file, "unit.cu", limit_s)
    if (log := warnings_of(product.output)) or not stands_alone(product.image):
        raise CompileFailed(log)
    resources = parse_resources(product.output)
    path = folder / f"{digest(product.image)[:KEY_LETTERS]}.cubin"
    binaries = [
        Binary(path, product.image, job.arch, kernels_of(job.source, resources), "")
        for job in batch
    ]
    with writing_cache(folder):
        replace_file(path, product.image)
        for job, binary in zip(batch, binaries, strict=True):
            store_binary(job.entry, binary, product.headers, product.headers_digest)
    return binaries


def _unit(sources: list[Compilable]) -> str:
    parts = _INCLUDE.findall(sources[0].text)
    for number, source in enumerate(sources):
        text = _INCLUDE.sub("", source.text)
        parts.append(f"namespace source_{number} {{\n{text}\nstruct end_of_source;\n}}\n")
    # These are not found where braces or a comment reach from one source into the next.
    parts += [
        f"using end_{number} = ::source_{number}::end_of_source;\n"
        for number in range(len(sources))
    ]
    return "".join(parts)
