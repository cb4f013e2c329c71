"""What static facts say against timing a kernel."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

import kgen
from kgen.errors import CompileFailed, MissingTool, UsageError
from kgen.launch import Launch, LaunchPlan
from kgen.launch import plan as plan_of
from kgen.store.measurement import Kind, Provenance
from kgen.sweep.pruning import prune, static_problems
from kgen.timing.candidates import Candidate
from kgen.timing.protocol import Protocol
from kgen.toolchain import Binary, CompileOptions, KernelResources

pytestmark = pytest.mark.slow


def binary(arch: str = "sm_90", kernels: tuple[str, ...] = ("k",), **takes: Any) -> Binary:
    """Make a binary whose kernels take 32 registers, and what is named."""
    names = ("stack_bytes", "spill_store_bytes", "spill_load_bytes", "static_shared_bytes")
    values = {"registers": 32} | dict.fromkeys(names, 0) | takes
    resources = tuple(KernelResources(kernel=kernel, **values) for kernel in kernels)
    return Binary(Path("k.cubin"), b"", arch, resources, "")


def plan(block: int = 256, dynamic: int = 0, kernels: tuple[str, ...] = ("k",)) -> LaunchPlan:
    launches = tuple(Launch(kernel, 4, block, dynamic, ("x", "y")) for kernel in kernels)
    return LaunchPlan(4, 1000, launches)


def test_nothing_is_said_against_an_ordinary_kernel() -> None:
    assert static_problems(binary(), plan()) == []
    assert static_problems(binary(), LaunchPlan(0, 0, ())) == []


@pytest.mark.parametrize(
    ("takes", "cols", "local"),
    [
        ({"stack_bytes": 8, "spill_store_bytes": 4, "spill_load_bytes": 8}, 4096, 0),
        ({"stack_bytes": 8, "spill_store_bytes": 4, "spill_load_bytes": 8}, 257, 0),
        ({"spill_store_bytes": 84, "spill_load_bytes": 43}, 4096, 0),
        ({"spill_store_bytes": 84, "spill_load_bytes": 44}, 4096, 128),
        ({"stack_bytes": 72}, 4096, 144),
        ({"stack_bytes": 72, "spill_store_bytes": 4, "spill_load_bytes": 4}, 4096, 144),
        ({"stack_bytes": 24}, 257, 48),
    ],
)
def test_local_memory_counts_beside_what_a_thread_moves(
    takes: dict[str, int], cols: int, local: int
) -> None:
    """A block of 256 threads on a row: 128 bytes of the matrix a thread, or 8."""
    launches = LaunchPlan(4, cols, (Launch("k", 4, 256, 0, ("x", "y")),))
    words = f"k moves {local} bytes a thread to and from local memory, {cols // 32} of the matrix"
    assert static_problems(binary(**takes), launches) == ([words] if local else [])


@pytest.mark.parametrize(
    ("arch", "most"),
    [("sm_75", 64 * 1024), ("sm_80", 163 * 1024), ("sm_86", 99 * 1024), ("sm_90", 227 * 1024)],
)
def test_shared_memory_of_a_block(arch: str, most: int) -> None:
    kernel = binary(arch, static_shared_bytes=128)
    assert static_problems(kernel, plan(dynamic=most - 128)) == []
    assert static_problems(kernel, plan(dynamic=most - 124)) == [
        f"k takes {most + 4} bytes of shared memory a block (128 static, {most - 124} dynamic), "
        f"and {arch} has {most}"
    ]


def test_registers_of_a_block() -> None:
    assert static_problems(binary(registers=64), plan(block=1024)) == []
    assert static_problems(binary(registers=65), plan(block=1024)) == [
        "k takes 65 registers in each of 1024 threads, more than a multiprocessor of sm_90 has"
    ]


def test_all_kernels_of_the_plan_and_all_reasons() -> None:
    names = ("a", "b")
    bad = binary(kernels=names, registers=255, stack_bytes=80, static_shared_bytes=300_000)
    found = static_problems(bad, plan(block=512, kernels=names))
    assert [problem.split()[:2] for problem in found] == [
        [name, verb] for name in names for verb in ("moves", "takes", "takes")
    ]


def test_unknown_architecture() -> None:
    with pytest.raises(UsageError, match="limits of 'sm_12' are not known"):
        static_problems(binary("sm_12"), plan())


def test_compiled_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of 64 values fits into the registers, unless a limit of them makes it spill."""
    monkeypatch.setenv("KGEN_CACHE_DIR", str(tmp_path))
    source = kgen.render("v7:threads=64,items=auto")
    # Launch bounds would stand above the limit.
    text = source.text.replace(" __launch_bounds__(THREADS_PER_BLOCK)", "")
    unbounded = dataclasses.replace(source, text=text)
    launches = plan_of(source, 128, 4096)
    try:
        assert static_problems(kgen.compile(source), launches) == []
    except MissingTool as missing:
        pytest.skip(str(missing))
    tight = kgen.compile(unbounded, options=CompileOptions(maxrregcount=24))
    (problem,) = static_problems(tight, launches)
    assert problem.startswith(f"{source.stem} moves ")
    assert (
        static_problems(kgen.compile("v2:vec=4"), plan_of(kgen.render("v2:vec=4"), 128, 4096)) == []
    )


def candidate(name: str, code: str = "", block: int = 256, **takes: Any) -> Candidate:
    """Make a candidate whose machine code is `code`."""
    made = dataclasses.replace(binary(**takes), log=code or name)
    return Candidate(
        kind=Kind.VARIANT, name=name, rows=4, cols=1000, binary=made, plan=plan(block=block)
    )


def test_what_needs_no_time_is_left_out_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgen.sweep.pruning.machine_code_digest", lambda made, kernel: made.log)
    given = [
        candidate("first", code="a"),
        candidate("twin", code="a"),
        candidate("launched otherwise", code="a", block=128),
        candidate("spills", spill_load_bytes=80),
        candidate("other"),
        dataclasses.replace(candidate("rejected"), binary=CompileFailed("no")),
        dataclasses.replace(candidate("not compiled"), binary=None),
    ]
    worth, pruned = prune(given, Protocol(), Provenance(run="", measured_at="", device=""))
    names = ["first", "launched otherwise", "other", "rejected", "not compiled"]
    assert [one.name for one in worth] == names
    assert {row.variant: (str(row.outcome), row.reason) for row in pruned} == {
        "twin": ("pruned", "the same machine code and launch as first"),
        "spills": (
            "pruned",
            "k moves 80 bytes a thread to and from local memory, 31 of the matrix",
        ),
    }
