"""What takes part in a benchmark, and why something cannot."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import kgen
from kgen import cpu
from kgen.errors import CompileFailed, MissingTool, UsageError
from kgen.evidence.inputs import make
from kgen.evidence.reference import criterion
from kgen.execute import find_target
from kgen.launch import plan
from kgen.sources.source import Source
from kgen.specs.types import find_types
from kgen.store.measurement import Kind
from kgen.timing import candidates as candidates_module
from kgen.timing.candidates import (
    COPY_KERNELS,
    Candidate,
    compiled,
    copies,
    line_up,
    of_peers,
    of_targets,
)
from kgen.timing.peers import Peer
from kgen.toolchain import CompileOptions, find

OPTIONS = CompileOptions()


def the_one(variant: str, rows: int, cols: int) -> Candidate:
    (candidate,) = of_targets([find_target(variant)], rows, cols)
    return candidate


def test_a_variant_has_its_source_and_plan() -> None:
    candidate = the_one("v7:items=2", 30, 1000)
    assert (candidate.kind, candidate.name) == (Kind.VARIANT, "v7:items=2")
    assert (candidate.rows, candidate.cols, candidate.reason) == (30, 1000, "")
    assert isinstance(candidate.source, Source) and candidate.is_kernel and not candidate.is_host
    assert candidate.source.text == kgen.render("v7:items=2").text
    assert candidate.plan == plan(candidate.source, 30, 1000)
    assert candidate.criterion == criterion(candidate.source.spec, 1000)


def test_items_follow_the_columns() -> None:
    short, long = the_one("v7", 30, 100), the_one("v7", 30, 4096)
    assert short.name == long.name == "v7"
    assert short.source and long.source and short.source.text != long.source.text


def test_an_edited_file_has_its_own_text_and_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(kgen.render("v5").text + "// mine\n")
    candidate = the_one(str(path), 3, 50)
    assert (candidate.kind, candidate.name) == (Kind.FILE, str(path))
    assert candidate.source and candidate.source.text.endswith("// mine\n")


def test_host_versions_are_no_kernels() -> None:
    candidate = the_one("cpu", 3, 50)
    assert candidate.is_host and not candidate.is_kernel and candidate.kind is Kind.VARIANT


@pytest.mark.parametrize(
    ("variant", "rows", "cols", "reason"),
    [
        ("v7:items=1", 3, 5000, "cols=5000 needs items>="),
        ("v5", 0, 50, "a matrix of 0 x 50 has nothing to time"),
        ("v5", 3, 0, "a matrix of 3 x 0 has nothing to time"),
        ("v5", -1, 50, "rows=-1"),
    ],
)
def test_a_shape_that_does_not_suit_is_a_reason(
    variant: str, rows: int, cols: int, reason: str
) -> None:
    candidate = the_one(variant, rows, cols)
    assert reason in candidate.reason
    assert candidate.source is candidate.plan is None and not candidate.is_kernel


def test_peers_are_no_kernels() -> None:
    one = Peer("one", "somebody's", Path("one.py"))
    (candidate,) = of_peers([one], 3, 5000)
    assert (candidate.kind, candidate.name, candidate.peer) == (Kind.PEER, "one", one)
    assert candidate.criterion.serial_additions > 5000 // 32 and not candidate.is_kernel


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 5), (64, 64), (30, 1027), (1024, 4096)])
def test_copies_cover_the_matrix(shape: tuple[int, int]) -> None:
    """Their own threads copy whole vectors, and the last block what is left of them."""
    driver, *kernels = copies(*shape)
    assert driver.source is driver.plan is None
    assert [one.name for one in kernels] == list(COPY_KERNELS)
    for one in (driver, *kernels):
        assert one.kind is Kind.COPY and (one.rows, one.cols) == shape
    count = int(np.prod(shape))
    for one in kernels:
        assert one.source and one.plan and f"void {one.name}(const IN*" in one.source.text
        (launch,) = one.plan.launches
        assert launch.args == ("x", "y", "rows", "cols") and launch.kernel == one.name
        elements = launch.block * COPY_KERNELS[one.name] * 4
        assert launch.grid * elements >= count > (launch.grid - 1) * elements


@pytest.mark.parametrize(
    ("types", "vec_size", "conversion"),
    [
        (("float32",), 4, "x"),
        (("bfloat16",), 8, "x"),
        (("float64",), 2, "x"),
        (("bfloat16", "float32"), 4, "__bfloat162float(x)"),
        (("float32", "float16"), 4, "__float2half_rn(x)"),
        (("bfloat16", "float16"), 8, "__float2half_rn(__bfloat162float(x))"),
    ],
)
def test_copies_read_one_type_and_write_the_other(
    types: tuple[str, ...], vec_size: int, conversion: str
) -> None:
    """The driver copies bytes alone; a vector of the wider type has 16 of them."""
    of_x, of_y = pair = find_types(*types)
    found = {one.name: one for one in copies(30, 1027, pair)}
    assert ("copy_driver" in found) == (of_x == of_y)
    for name, vectors in COPY_KERNELS.items():
        one = found[name]
        assert one.types == pair and one.source and one.plan
        assert (one.plan.dtype, one.plan.out_dtype) == pair
        elements = one.plan.launches[0].block * vectors * vec_size
        assert one.plan.launches[0].grid == -(-30 * 1027 // elements)
        lines = one.source.text.splitlines()
        assert f"#define IN {of_x.c_type}" in lines and f"#define OUT {of_y.c_type}" in lines
        assert f"#define VEC_SIZE {vec_size}" in lines
        assert f"#define CONVERTED(x) {conversion}" in lines
        wanted = {f"#include <{of.includes}>" for of in pair if of.includes}
        assert {line for line in lines if line.startswith("#include")} == wanted


def test_peers_and_copies_have_the_types_of_the_variants() -> None:
    targets = [find_target(f"{name}:dtype=bfloat16,out_dtype=float32") for name in ("v7", "v8")]
    found = line_up(targets, [Peer("one", "", Path("one.py"))], 3, 50)
    assert [one.name for one in found][2:] == ["one", *COPY_KERNELS]
    assert {one.types for one in found} == {find_types("bfloat16", "float32")}


def test_candidates_of_different_types_are_refused() -> None:
    targets = [find_target(variant) for variant in ("v7", "v8", "v8:dtype=float16")]
    with pytest.raises(
        UsageError, match=r"v8 of float32, v8:dtype=float16 of float16: what differs in type"
    ):
        line_up(targets, [], 3, 50)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (30, 1027)])
def test_copies_are_exact(cxx: None, shape: tuple[int, int]) -> None:
    x = make("with_minus_inf", *shape)
    for one in copies(*shape)[1:]:
        assert one.source and one.plan
        source = Source(kgen.spec("v5"), "copy", one.source.text, one.source.kernels)
        np.testing.assert_array_equal(cpu.run(source, one.plan, x), x)


def test_candidates_can_be_sent_to_a_worker() -> None:
    ours = [the_one("v5", 3, 50), the_one("cpu", 3, 50), *copies(3, 50)]
    assert pickle.loads(pickle.dumps(ours)) == ours


def test_kernels_are_compiled_together_and_each_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def compile_many(
        sources: Sequence[Source], arch: str, options: CompileOptions
    ) -> list[CompileFailed]:
        assert (arch, options) == ("sm_90", OPTIONS)
        asked.extend(source.filename for source in sources)
        return [CompileFailed(source.filename) for source in sources]

    monkeypatch.setattr(candidates_module, "compile_many", compile_many)
    ours = [the_one("cpu", 3, 50), the_one("v5", 3, 50), *copies(3, 50), the_one("v5", 0, 50)]
    host, v5, driver, one, four, refused = compiled(ours, "sm_90", OPTIONS)
    assert asked == ["softmax_v5.cu", "copy.cu"]
    assert (str(v5.binary), str(one.binary), one.binary) == (
        "softmax_v5.cu",
        "copy.cu",
        four.binary,
    )
    assert host.binary is driver.binary is refused.binary is None
    assert [one.name for one in (host, v5, driver)] == ["cpu", "v5", "copy_driver"]


def test_what_the_gpu_is_too_old_for_is_refused_and_the_others_are_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def compile_many(sources: Sequence[Source], *_: object) -> list[CompileFailed]:
        asked.extend(source.filename for source in sources)
        return [CompileFailed(source.filename) for source in sources]

    monkeypatch.setattr(candidates_module, "compile_many", compile_many)
    v5, v13 = compiled([the_one("v5", 3, 50), the_one("v13", 3, 50)], "sm_80", OPTIONS)
    assert asked == ["softmax_v5.cu"] and v5.reason == ""
    assert v13.reason == "it needs sm_90 or newer, and this GPU is sm_80" and v13.binary is None


def test_a_compiler_is_needed_for_kernels_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KGEN_NVCC", raising=False)
    monkeypatch.setattr(find, "_candidates", lambda name: iter(()))
    assert compiled([the_one("cpu", 3, 50)], "sm_90", OPTIONS) == [the_one("cpu", 3, 50)]
    with pytest.raises(MissingTool, match="no nvcc"):
        compiled([the_one("v5", 3, 50)], "sm_90", OPTIONS)
