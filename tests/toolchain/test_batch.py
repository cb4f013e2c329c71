"""Many sources in one translation unit: the same result as alone, and nobody else's trouble."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import kgen
from kgen.errors import CompileFailed, MachineTrouble, MissingTool
from kgen.sources.source import Source
from kgen.toolchain import (
    Binary,
    CompileOptions,
    batch,
    compile_cubin,
    compile_many,
    find_nvcc,
    machine_code_digest,
    sass_by_kernel,
)
from kgen.toolchain import (
    nvcc as nvcc_module,
)

pytestmark = pytest.mark.slow

MakeSource = Callable[..., Source]
MakeProgram = Callable[[str, str], Path]

COUNTING_NVCC = """#!/bin/sh
case "$*" in *" -o "*) echo run >> "$(dirname "$0")/runs" ;; esac
exec NVCC "$@"
"""

# Compiles at once, or hangs in a program that it started; the image has one section, a nameless one.
HANGING_NVCC = """#!/bin/sh
here=$(dirname "$0")
case "$1" in
--version) echo "Cuda compilation tools, release 13.0, V13.0.88"; exit ;;
--list-gpu-code) echo sm_90; exit ;;
esac
while [ $# -gt 1 ]; do
  case "$1" in -o) cubin=$2 ;; -MF) depends=$2 ;; esac
  shift
done
if grep -q hang "$1"; then sleep 100 & echo $! >> "$here/sleepers"; wait; fi
cp "$here/image" "$cubin"
printf 'cubin : %s' "$1" > "$depends"
for name in $(grep -o 'k_[a-z]*' "$1"); do
  echo "ptxas info    : Compiling entry function '$name' for 'sm_90'"
  echo "ptxas info    : Used 10 registers, used 0 barriers"
done
"""
IMAGE = b"\x7fELF\x02\x01\x01" + bytes(33) + b"\x40" + bytes(17) + b"\x40\0\x01\0\0\0" + bytes(64)

# Ends without warning: when nvcc is done and nothing stored, or at the third entry of a batch.
KILLED = """
import os, signal, sys
import kgen
from kgen.toolchain import batch, compile_many
from kgen.cache import Entry

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

stores, store = [], Entry.store
def store_two(*args):
    stores.append(args)
    return store(*args) if len(stores) < 3 else die()

if sys.argv[1] == "compiled":
    batch.parse_resources = die
else:
    Entry.store = store_two
batch.os.cpu_count = lambda: 1
compile_many([kgen.render(variant) for variant in sys.argv[2:]], "sm_90")
"""

ONE_OF_EIGHT = """
import sys
import kgen
from kgen.toolchain import Binary, compile_many, machine_code_digest
sources = [kgen.render(variant) for variant in sys.argv[1:]]
for _ in range(2):
    for source, binary in zip(sources, compile_many(sources, "sm_90"), strict=True):
        assert isinstance(binary, Binary) and binary.image == binary.path.read_bytes()
        print(*(machine_code_digest(binary, kernel) for kernel in source.kernels))
"""

VARIANTS = ["v1", "v7", "t1:update=online", "t2:cache=shared,vec=2", "v8:exp=exp2", "v9:vec=4"]


@pytest.fixture
def runs(
    nvcc: None, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], int]:
    """Count the compilations of the real nvcc."""
    text = COUNTING_NVCC.replace("NVCC", str(find_nvcc().path))
    monkeypatch.setenv("KGEN_NVCC", str(make_program("tools/nvcc", text)))
    counter = make_program("tools/runs", "")
    return lambda: len(counter.read_text().splitlines())


@pytest.fixture(autouse=True)
def one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put all that may share a unit into one."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1)


def sources_of(*variants: str) -> list[Source]:
    return [kgen.render(variant) for variant in variants]


def facts(source: Source, result: Binary | CompileFailed) -> tuple[object, ...]:
    """What must not depend on how a source was compiled."""
    if isinstance(result, CompileFailed):
        return (str(result),)
    digests = [machine_code_digest(result, kernel) for kernel in source.kernels]
    return result.arch, result.kernels, result.log, digests


def alone(source: Source, monkeypatch: pytest.MonkeyPatch, arch: str = "sm_90") -> Binary:
    """Compile a source in a cache that no batch has been put into."""
    with monkeypatch.context() as patch:
        patch.setenv("KGEN_CACHE_DIR", os.environ["KGEN_CACHE_DIR"] + ".alone")
        return compile_cubin(source, arch)


def kernel(name: str, body: str = "", before: str = "") -> str:
    return f'{before}\nextern "C" __global__ void {name}(float* y, int i) {{ {body} }}\n'


@pytest.mark.parametrize(("arch", "variants"), [("sm_90", VARIANTS), ("sm_75", VARIANTS[:4])])
def test_same_machine_code_as_alone(
    runs: Callable[[], int], monkeypatch: pytest.MonkeyPatch, arch: str, variants: list[str]
) -> None:
    sources = sources_of(*variants)
    results = compile_many(sources, arch)
    assert runs() == 2  # those that include <cstdint>, and those that do not
    for source, result in zip(sources, results, strict=True):
        by_itself = alone(source, monkeypatch, arch)
        assert isinstance(result, Binary)
        assert facts(source, result) == facts(source, by_itself)
        try:
            assert sass_by_kernel(result) == sass_by_kernel(by_itself)
        except MissingTool:
            continue


def test_all_are_found_in_the_cache_afterwards(runs: Callable[[], int]) -> None:
    sources = sources_of("v1", "v2", "v3", "v1")
    first = compile_many(sources, "sm_90")
    again = compile_many(sources, "sm_90")
    assert first == again == [compile_cubin(source, "sm_90") for source in sources]
    assert runs() == 1
    images = {id(result.image) for result in again if isinstance(result, Binary)}
    assert len(images) == 1  # the shared cubin is in memory once


def test_units_are_even_and_not_too_large() -> None:
    jobs = [
        batch.prepare(kgen.render(f"v1:threads={n}"), "sm_90", CompileOptions()) for n in (32, 64)
    ]
    many = [jobs[n % 2] for n in range(batch.MAX_SOURCES + 1)]
    assert [len(part) for part in batch._batches(many)] == [17, 16]
    assert [len(part) for part in batch._batches(jobs)] == [2]


def test_failure_and_warning_are_their_sources_own(
    runs: Callable[[], int], make_source: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [kernel(f"k{number}", f"y[i] = {number};") for number in range(8)]
    texts[2] = kernel("k2", "oops;")
    texts[5] = kernel("k5", "int unused;")
    texts[6] = kernel("wrong_name")
    sources = [make_source(text, f"k{n}", stem=f"file{n}") for n, text in enumerate(texts)]
    results = compile_many(sources, "sm_90")
    assert [isinstance(result, CompileFailed) for result in results] == [
        number in (2, 6) for number in range(8)
    ]
    for number in (2, 6):
        with pytest.raises(CompileFailed) as failure:
            alone(sources[number], monkeypatch)
        assert str(results[number]) == str(failure.value)
    for number in (0, 5, 7):
        expected = facts(sources[number], alone(sources[number], monkeypatch))
        assert facts(sources[number], results[number]) == expected
    assert "file5.cu" in getattr(results[5], "log", "")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # The second uses what only the first includes or defines.
        (kernel("a", before="#include <cfenv>"), kernel("b", "y[i] = FE_DIVBYZERO;")),
        (kernel("a", before="#define SIZE 3"), kernel("b", "y[i] = SIZE;")),
        (kernel("a", before="__device__ void f() {}"), kernel("b", "f();")),
        (kernel("a", before="namespace n { int f(); "), kernel("b", before="}")),
        (kernel("a", before="/*"), kernel("b", before="*/")),
        (kernel("a"), kernel("b", before="}") + "namespace n {"),
        # Both define the same names, or data that the code of the second refers to.
        (kernel("b", "y[i] = 1;"), kernel("b", "y[i] = 2;")),
        (
            kernel("a", "y[i] = f(1);", "__device__ int f(int i) { return i; }"),
            kernel("b", "y[i] = f(1);", "__device__ int f(int i) { return 2 * i; }"),
        ),
        (
            kernel("a", "y[i] = c[i];", "__constant__ float c[4];"),
            kernel("b", "y[i] = c[i];", "__constant__ float c[5];"),
        ),
        (kernel("a", "y[i] = d[i];", "__device__ int d[4];"), kernel("b", "i = y[i];")),
    ],
)
def test_no_source_reaches_into_another(
    nvcc: None, make_source: MakeSource, monkeypatch: pytest.MonkeyPatch, one: str, other: str
) -> None:
    name = "b" if "void b" in one else "a"
    sources = [make_source(one, name), make_source(other, "b")]
    for source, result in zip(sources, compile_many(sources, "sm_90"), strict=True):
        try:
            expected: Binary | CompileFailed = alone(source, monkeypatch)
        except CompileFailed as failure:
            expected = failure
        assert facts(source, result) == facts(source, expected)


@pytest.mark.parametrize("why", ["path", "lineinfo", "NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS"])
def test_some_are_compiled_apart(
    runs: Callable[[], int],
    make_source: MakeSource,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    why: str,
) -> None:
    if why.startswith("NVCC"):
        monkeypatch.setenv(why, "-DX")
    path = tmp_path / "mine.cu" if why == "path" else None
    sources = [make_source(kernel(name), name, path=path) for name in "ab"]
    results = compile_many(sources, "sm_90", CompileOptions(lineinfo=why == "lineinfo"))
    assert runs() == 2 and len({getattr(result, "path", "") for result in results}) == 2


@pytest.mark.parametrize("damage", ["truncated", "absent", "foreign"])
def test_damaged_shared_cubin_is_compiled_again(runs: Callable[[], int], damage: str) -> None:
    sources = sources_of("v1", "v2")
    first = compile_many(sources, "sm_90")
    assert isinstance(first[0], Binary)
    path = first[0].path
    image = path.read_bytes()
    if damage == "absent":
        path.unlink()
    else:
        path.write_bytes(image[:-9] if damage == "truncated" else image[::-1])
    assert compile_many(sources, "sm_90") == first
    assert runs() == 2 and path.read_bytes() == image
    path.write_bytes(image[:-9])
    assert facts(sources[1], compile_cubin(sources[1], "sm_90")) == facts(sources[1], first[1])
    assert runs() == 3


def test_hang_is_stopped_and_blamed_alone(
    make_source: MakeSource, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = make_program("tools/nvcc", HANGING_NVCC)
    (program.parent / "image").write_bytes(IMAGE)
    monkeypatch.setenv("KGEN_NVCC", str(program))
    monkeypatch.setattr(batch, "_UNIT_LIMIT_S", 1.0)
    monkeypatch.setattr(batch, "_SOURCE_LIMIT_S", 0.0)
    monkeypatch.setattr(nvcc_module, "_TIME_LIMIT_S", 1.5)
    sources = [make_source(f"k_{name}", f"k_{name}", stem=name) for name in ("a", "hang", "b", "c")]
    began = time.monotonic()
    results = compile_many(sources, "sm_90")
    assert time.monotonic() - began < 50
    assert [isinstance(result, Binary) for result in results] == [True, False, True, True]
    assert str(results[1]).startswith("nvcc was stopped after 1.5 s with hang.cu")
    sleepers = (program.parent / "sleepers").read_text().split()
    assert len(sleepers) == 3 and not any(map(is_running, sleepers))


def test_what_the_machine_lacks_for_one_leaves_the_others_alone(
    make_source: MakeSource, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = HANGING_NVCC.replace("sleep 100 &", "kill -9 $$;")
    program = make_program("tools/nvcc", killed)
    (program.parent / "image").write_bytes(IMAGE)
    monkeypatch.setenv("KGEN_NVCC", str(program))
    sources = [make_source(f"k_{name}", f"k_{name}", stem=name) for name in ("a", "hang", "b", "c")]
    results = compile_many(sources, "sm_90")
    assert [isinstance(result, Binary) for result in results] == [True, False, True, True]
    assert isinstance(results[1], MachineTrouble) and "SIGKILL" in str(results[1])


def is_running(process: str) -> bool:
    try:
        state = Path("/proc", process, "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_eight_processes_on_one_cold_cache(runs: Callable[[], int], cache: Path) -> None:
    variants = VARIANTS[:4]
    command = [sys.executable, "-c", ONE_OF_EIGHT, *variants]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    outputs = {process.communicate()[0] for process in started}
    assert [process.returncode for process in started] == [0] * 8
    assert len(outputs) == 1  # the same digests in all of them
    before = runs()
    found = compile_many(sources_of(*variants), "sm_90")
    assert runs() == before and all(isinstance(result, Binary) for result in found)
    assert not list(cache.rglob(".*"))  # no lock and nothing half done is left


@pytest.mark.parametrize("when", ["compiled", "storing"])
def test_killed_process_leaves_a_usable_cache(
    runs: Callable[[], int], monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    variants = ["v1", "v2", "v3", "v4_opt"]
    killed = subprocess.run([sys.executable, "-c", KILLED, when, *variants])
    assert killed.returncode == -signal.SIGKILL and runs() == 1
    sources = sources_of(*variants)
    results = compile_many(sources, "sm_90")
    assert runs() == 2
    for source, result in zip(sources, results, strict=True):
        assert facts(source, result) == facts(source, alone(source, monkeypatch))
