"""What a benchmark says without a GPU: whether a candidate is right, and what it does."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import kgen
from kgen import cpu
from kgen.errors import MachineTrouble, MissingTool
from kgen.evidence.inputs import make
from kgen.execute import find_target
from kgen.launch import plan
from kgen.store.measurement import CPU, Measurement, Outcome
from kgen.timing import on_cpu
from kgen.timing.candidates import Candidate, copies, of_targets
from kgen.timing.on_cpu import NOT_TIMED, measure_on_cpu
from kgen.timing.protocol import ROTATED
from tests.timing import fakes
from tests.timing.fakes import peer

pytestmark = pytest.mark.usefixtures("cxx")

ROWS, COLS = 6, 100
PROVENANCE = replace(fakes.PROVENANCE, device=CPU)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with edited files: one wrong, one that breaks a rule, one that is no C++."""
    folder = tmp_path_factory.mktemp("edited")
    text = kgen.render("v5").text
    edits = {
        "wrong": ("* inverse_sum", "* (2.0f * inverse_sum)"),
        "unwritten": ("c = threadIdx.x; c < cols", "c = threadIdx.x; c < cols - 1"),
        "outside": ("y_row[c] =", "y_row[c + 4096] ="),
        "rejected": ("expf(-fabsf(", "exqf(-fabsf("),
    }
    for name, (old, new) in edits.items():
        assert old in text, name
        (folder / f"{name}.cu").write_text(text.replace(old, new))
    return folder


def candidates(*targets: object) -> list[Candidate]:
    return of_targets([find_target(str(target)) for target in targets], ROWS, COLS)


@pytest.fixture(scope="module")
def everything(folder: Path) -> tuple[dict[str, Measurement], list[Measurement]]:
    """Rows by name of a run with everything that can happen, and what was kept of it."""
    if not cpu_compiler():
        pytest.skip("no C++ compiler")
    kept: list[Measurement] = []
    files = [folder / f"{name}.cu" for name in ("wrong", "unwritten", "outside", "rejected")]
    ours = candidates("v5", "cpu", "v7:items=1", *files)
    ours[2] = replace(ours[2], source=None, plan=None, reason="too many columns")
    rows = measure_on_cpu(
        [*ours, peer("a_peer"), *copies(ROWS, COLS)], ROTATED, PROVENANCE, keep=kept.append
    )
    return {Path(row.variant).stem: row for row in rows}, kept


def cpu_compiler() -> bool:
    try:
        return bool(cpu.find_cxx())
    except MissingTool:
        return False


def test_every_candidate_has_its_outcome(everything: tuple[dict[str, Measurement], object]) -> None:
    rows, kept = everything
    assert {name: (str(row.outcome), row.kind) for name, row in rows.items()} == {
        "v5": ("ok", "variant"),
        "cpu": ("ok", "variant"),
        "v7:items=1": ("refused", "variant"),
        "wrong": ("wrong", "file"),
        "unwritten": ("wrong", "file"),
        "outside": ("failed", "file"),
        "rejected": ("failed", "file"),
        "a_peer": ("skipped", "peer"),
    }
    assert kept == list(rows.values())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("v7:items=1", "too many columns"),
        ("wrong", "1.00e+00 of the row's largest value"),
        ("unwritten", "is not written or NaN"),
        ("outside", "outside.cu:"),
        ("rejected", "exqf"),
        ("a_peer", "peers need a GPU"),
    ],
)
def test_who_is_not_right_has_a_reason(
    everything: tuple[dict[str, Measurement], object], name: str, words: str
) -> None:
    assert words in everything[0][name].reason
    assert everything[0][name].global_loads is None


def test_nothing_is_timed(everything: tuple[dict[str, Measurement], object]) -> None:
    for row in everything[0].values():
        assert row.samples_us == () and row.median_us is row.speedup is row.registers is None
        assert row.remark.startswith(NOT_TIMED) and row.l2 == row.flags == ""


def test_errors_are_those_of_every_kind_of_input(
    everything: tuple[dict[str, Measurement], object],
) -> None:
    rows, _ = everything
    for name in ("v5", "cpu"):
        assert 0 < (rows[name].max_abs_error or 0) < (rows[name].max_rel_error or 1) < 1e-5
    assert (rows["wrong"].max_rel_error or 0) >= 1
    assert rows["unwritten"].max_rel_error is None


def test_counts_are_of_the_benchmarks_input(
    everything: tuple[dict[str, Measurement], object],
) -> None:
    row = everything[0]["v5"]
    source = kgen.render("v5")
    x = make(ROTATED.input_name, ROWS, COLS, ROTATED.seed)
    (seen,) = cpu.observe(source, plan(source, ROWS, COLS), x).counts
    assert row.global_loads == seen.global_loads and row.global_stores == seen.global_stores
    assert row.global_sectors == seen.global_sectors_loaded + seen.global_sectors_stored
    assert row.shared_accesses == seen.shared_loads + seen.shared_stores
    assert (row.exponentials, row.shuffles) == (seen.exponentials, seen.shuffles)
    assert row.barriers == seen.barriers and (row.global_loads or 0) > 0


def test_counts_of_several_launches_are_added() -> None:
    (candidate,) = candidates("t1")
    assert candidate.plan and len(candidate.plan.launches) > 1
    (row,) = measure_on_cpu([candidate], ROTATED, PROVENANCE)
    source = candidate.source
    seen = cpu.observe(source, candidate.plan, make("uniform", ROWS, COLS)).counts  # type: ignore[arg-type]
    assert row.global_loads == sum(counts.global_loads for counts in seen)


def test_host_versions_and_large_matrices_are_not_counted(
    everything: tuple[dict[str, Measurement], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = everything[0]["cpu"]
    assert host.global_loads is None and "only kernels are counted" in host.remark
    monkeypatch.setattr(on_cpu, "MAX_COUNTED", ROWS * COLS - 1)
    (row,) = measure_on_cpu(candidates("v5"), ROTATED, PROVENANCE)
    assert row.outcome is Outcome.OK and row.global_loads is None
    assert "600 elements are too many to count, 599 are not" in row.remark


def test_a_kernel_that_hangs_is_a_failed_row(tmp_path: Path) -> None:
    path = tmp_path / "endless.cu"
    text = kgen.render("v5").text
    old = "c = threadIdx.x; c < cols; c +="
    assert old in text
    path.write_text(text.replace(old, "c = threadIdx.x; c < cols; c += 0 *"))
    (row,) = measure_on_cpu(candidates(path), ROTATED, PROVENANCE, timeout_s=1)
    assert row.outcome is Outcome.FAILED and "1 s" in row.reason


@pytest.mark.parametrize(
    ("lack", "words"),
    [
        (MachineTrouble("g++ could not finish"), "g\\+\\+ could not finish"),
        (MemoryError(), "out of memory: free memory"),
        (OSError(errno.EMFILE, "too many"), "too many: raise the limit of open files"),
        (RuntimeError("can't start new thread"), "no further thread can be started"),
    ],
)
def test_what_the_machine_lacks_is_no_failure(
    lack: Exception, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise lack

    monkeypatch.setattr(cpu, "observe", refuse)
    (row,) = measure_on_cpu(candidates("v5"), ROTATED, PROVENANCE)
    assert row.outcome is Outcome.MACHINE_TROUBLE and re.match(words, row.reason)


def test_rows_are_kept_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt costs what comes after it, not what was there."""
    kept: list[str] = []

    def interrupted(row: Measurement) -> None:
        kept.append(row.variant)
        if len(kept) == 2:
            raise KeyboardInterrupt

    ours = [peer(name) for name in "abc"]
    with pytest.raises(KeyboardInterrupt):
        measure_on_cpu(ours, ROTATED, PROVENANCE, keep=interrupted)
    assert kept == ["a", "b"]


@pytest.fixture
def no_cxx(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without a C++ compiler."""
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    yield


def test_without_a_compiler_nothing_is_measured(no_cxx: None) -> None:
    with pytest.raises(MissingTool, match="CXX names"):
        measure_on_cpu(candidates("v5"), ROTATED, PROVENANCE)


def test_a_cache_that_cannot_be_written_is_no_candidates_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row would say so for ever, although the kernel was not even compiled."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("KGEN_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(MissingTool, match="set KGEN_CACHE_DIR"):
        measure_on_cpu(candidates("v5"), ROTATED, PROVENANCE)
