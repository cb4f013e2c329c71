"""Measuring on a stand-in for the GPU: who is timed, who is not, and who pays for whom."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kgen.errors import MissingTool
from kgen.execute import find_target
from kgen.sources.source import Source
from kgen.store.measurement import Kind, Measurement, Outcome
from kgen.timing import bench as bench_module
from kgen.timing import candidates as candidates_module
from kgen.timing.bench import Bench, measure
from kgen.timing.candidates import Candidate, compiled, copies, of_targets
from kgen.timing.protocol import Protocol
from kgen.toolchain import Binary, compile_many
from kgen.toolchain.source import PlainSource
from tests.timing.fakes import (
    CALLS,
    COLS,
    PROVENANCE,
    ROUNDS,
    ROWS,
    SIX_ROUNDS,
    FakeDevice,
    Heard,
    peer,
    variant,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fake_nvcc")]
Rows = dict[str, Measurement]


def measured(
    *candidates: Candidate, protocol: Protocol = SIX_ROUNDS, baseline: str | None = None
) -> tuple[Rows, Heard]:
    heard = Heard()
    rows = measure(
        candidates, protocol, PROVENANCE, baseline=baseline, open_device=FakeDevice, record=heard
    )
    assert [row.variant for row in rows] == [candidate.name for candidate in candidates]
    return {row.variant: row for row in rows}, heard


@pytest.fixture(scope="module")
def everything(fake_nvcc: None) -> tuple[Rows, Heard]:
    """A run with everything that can happen to a candidate, and right ones all around it."""
    return measured(
        replace(variant("v3"), reason="v3 covers 4096 columns", source=None, plan=None),
        variant("rejected"),
        variant("wrong"),
        variant("slow"),
        variant("crash"),
        variant("unwritten_wrong"),
        variant("timed_wrong"),
        variant("fault"),
        variant("timed_unwritten_wrong"),
        variant("too_big"),
        peer("absent"),
        peer("a_peer"),
        peer("rows_odd"),
        variant("crash@3"),
        variant("lukewarm"),
        variant("fast"),
        variant("copy", Kind.COPY),
        variant("copy_wrong", Kind.COPY),
    )


def test_every_candidate_has_its_outcome(everything: tuple[Rows, Heard]) -> None:
    rows, _ = everything
    assert {name: str(row.outcome) for name, row in rows.items()} == {
        "v3": "refused",
        "rejected": "failed",
        "wrong": "wrong",
        "slow": "ok",
        "crash": "failed",
        "unwritten_wrong": "wrong",
        "timed_wrong": "wrong",
        "fault": "failed",
        "timed_unwritten_wrong": "wrong",
        "too_big": "refused",
        "absent": "skipped",
        "a_peer": "ok",
        "rows_odd": "ok",
        "crash@3": "failed",
        "lukewarm": "ok",
        "fast": "ok",
        "copy": "ok",
        "copy_wrong": "wrong",
    }


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("v3", "v3 covers 4096 columns"),
        ("rejected", "nvcc rejected rejected.cu"),
        ("wrong", "row 2, column 3"),
        ("crash", "SIGSEGV"),
        ("unwritten_wrong", "row 5, column 6) is not written or NaN"),
        ("timed_wrong", "row 2, column 3"),
        ("fault", "an illegal memory access"),
        ("timed_unwritten_wrong", "is not written or NaN"),
        ("too_big", "300000 bytes of shared memory"),
        ("absent", "no module named absent"),
        ("crash@3", "SIGSEGV"),
        ("copy_wrong", "the copy differs from what it copies"),
    ],
)
def test_who_is_not_right_has_a_reason_and_no_times(
    everything: tuple[Rows, Heard], name: str, words: str
) -> None:
    row = everything[0][name]
    assert words in row.reason
    assert row.samples_us == () and row.median_us is None and row.speedup is None


def test_a_peer_that_is_wrong_on_odd_rows_alone_is_timed_and_told_of(
    everything: tuple[Rows, Heard],
) -> None:
    row = everything[0]["rows_odd"]
    assert row.median_us and row.max_abs_error is not None and row.max_abs_error < 1e-6
    assert "wrong on rows of odd values: element (row 2, column 3)" in row.remark


def test_a_right_candidate_is_timed(everything: tuple[Rows, Heard]) -> None:
    row = everything[0]["slow"]
    assert (row.rows, row.cols, row.kind) == (ROWS, COLS, Kind.VARIANT)
    assert row.provenance == PROVENANCE and row.reason == "" and row.is_complete
    assert len(row.samples_us) == ROUNDS and row.calls_per_sample == CALLS
    assert row.min_us == pytest.approx(3) and row.max_us == pytest.approx(3.006)
    assert row.median_us == pytest.approx(3.003) and row.mean_us == pytest.approx(3.003)
    assert row.gb_per_s == pytest.approx(8 * ROWS * COLS / row.median_us / 1e3)
    assert 0 < (row.max_abs_error or 0) < (row.max_rel_error or 0) < 1e-6
    assert (row.protocol_name, row.l2, row.flags) == ("rotated", "cold", "--std=c++17 -O3")
    assert Protocol.from_json(row.protocol) == SIX_ROUNDS


def test_what_the_compiler_said_is_in_the_row(everything: tuple[Rows, Heard]) -> None:
    row = everything[0]["slow"]
    assert (row.registers, row.stack_bytes, row.shared_bytes) == (31, 16, 1024 + 256)
    assert (row.spill_store_bytes, row.spill_load_bytes) == (4, 8)
    assert len(row.source_hash) == 64
    assert everything[0]["a_peer"].registers is None


def test_the_first_right_one_is_the_baseline(everything: tuple[Rows, Heard]) -> None:
    rows, _ = everything
    assert {row.baseline for row in rows.values() if row.samples_us} == {"slow"}
    assert rows["fast"].speedup == pytest.approx(3, rel=0.01) and rows["slow"].speedup == 1
    assert rows["fast"].is_tied and not rows["slow"].is_tied
    assert rows["copy"].is_tied is None and rows["fast"].copy_us == rows["copy"].median_us


def test_what_the_device_remarks_is_in_the_row(everything: tuple[Rows, Heard]) -> None:
    assert everything[0]["lukewarm"].remark == "not cold"
    assert everything[0]["fast"].remark == ""


def test_who_is_wrong_has_its_errors(everything: tuple[Rows, Heard]) -> None:
    rows, _ = everything
    assert rows["wrong"].max_abs_error == pytest.approx(1)
    assert rows["timed_wrong"].max_abs_error == pytest.approx(1)
    assert rows["unwritten_wrong"].max_abs_error is None
    assert rows["crash@3"].max_abs_error is None


def test_every_row_is_finished_once_and_failures_at_once(everything: tuple[Rows, Heard]) -> None:
    rows, heard = everything
    assert sorted(heard.names) == sorted(rows)
    right = [name for name, row in rows.items() if row.outcome is Outcome.OK]
    assert heard.names[-len(right) - 1 :] == ["crash@3", *right]
    assert [row.variant for row in heard.begun] == [
        name for name in rows if name in right or name == "crash@3"
    ]
    assert all(rows[row.variant] == row for row in heard.finished)


def test_a_crash_in_the_rounds_costs_no_sample_of_the_others(
    everything: tuple[Rows, Heard],
) -> None:
    rows, heard = everything
    right = {name for name, row in rows.items() if row.outcome is Outcome.OK}
    assert [set(taken) for taken in heard.rounds] == [right | {"crash@3"}] * 2 + [right] * 4
    for name in right:
        assert rows[name].samples_us == tuple(taken[name] for taken in heard.rounds)


def test_only_a_peer_may_miss_something() -> None:
    with pytest.raises(MissingTool, match="no module named absent"):
        measured(variant("absent"))


def test_nothing_but_refusals() -> None:
    rows, heard = measured(replace(variant("v3"), reason="no", source=None, plan=None))
    assert rows["v3"].outcome is Outcome.REFUSED and heard.names == ["v3"]


def test_who_fails_in_the_rounds_costs_only_its_own_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_module, "LEAST_STOP_S", 0.5)
    began = time.monotonic()
    names = ["hang@2", "slow", "fault@2", "too_big@3", "fast"]
    rows, heard = measured(*map(variant, names), baseline="fast")
    assert rows["hang@2"].reason == "it gave no result within 0.5 s and was stopped"
    assert rows["hang@2"].outcome is rows["fault@2"].outcome is Outcome.FAILED
    assert rows["too_big@3"].outcome is Outcome.REFUSED
    assert heard.names[3:] == ["slow", "fast"]
    assert {row.variant for row in heard.finished[:3]} == {"hang@2", "fault@2", "too_big@3"}
    assert len(rows["slow"].samples_us) == len(rows["fast"].samples_us) == ROUNDS
    assert rows["slow"].baseline == "fast"
    assert rows["slow"].speedup == pytest.approx(1 / 3, rel=0.01)
    assert time.monotonic() - began < 60


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench(ROWS, COLS, SIX_ROUNDS, PROVENANCE, open_device=FakeDevice)
    yield bench
    bench.close()


def test_who_hangs_when_it_is_prepared_is_stopped(bench: Bench) -> None:
    assert bench.prepare(variant("good")).outcome is Outcome.OK
    bench.prepare_s = 0.2
    hung = bench.prepare(variant("hang"))
    assert hung.outcome is Outcome.FAILED and "no result within 0.2 s" in hung.reason
    assert not bench.is_ready(variant("hang")) and bench.is_ready(variant("good"))
    bench.prepare_s = 60
    assert bench.prepare(variant("another")).outcome is Outcome.OK


def test_a_sample_may_take_so_many_times_the_baselines(bench: Bench) -> None:
    bench.prepare(variant("good"))
    for multiple, stop_s in ((1000, bench_module.LEAST_STOP_S), (1e7, 2e7 * 2e-6 * CALLS)):
        bench.protocol = replace(SIX_ROUNDS, stop_multiple=multiple)
        bench.limit_by(variant("good"))
        assert bench.stop_s == pytest.approx(stop_s, rel=0.01)


def test_a_new_worker_has_time_to_make_ready_again(bench: Bench) -> None:
    """However short a sample, one in a process that has just started takes longer."""
    names = ["crash@1", "good", "another"]
    for name in names:
        bench.prepare(variant(name))
    bench.stop_s = 0.1
    taken = bench.time([variant(name) for name in names], Heard())
    assert {name: len(samples) for name, samples in taken.samples.items()} == {
        "good": ROUNDS,
        "another": ROUNDS,
    }


def test_rounds_go_on_after_a_drop(bench: Bench) -> None:
    bench.prepare(variant("good"))
    first = bench.time([variant("good")], Heard(), replace(SIX_ROUNDS, min_rounds=2, max_rounds=2))
    bench.drop(variant("good"))
    then = bench.time([variant("good")], Heard(), earlier=first.samples)
    assert then.samples["good"][:2] == first.samples["good"]
    (row,) = bench.summarize(then.samples)
    assert row.samples_us == tuple(then.samples["good"]) and row.baseline == ""


def test_host_versions_are_timed_on_the_host(cxx: None) -> None:
    (right,) = of_targets([find_target("cpu")], ROWS, COLS)
    assert isinstance(right.source, Source) and " / row_sum" in right.source.text
    text = right.source.text.replace(" / row_sum", " / (2.0f * row_sum)")
    wrong = replace(right, name="halved", source=replace(right.source, text=text))
    rows, _ = measured(right, wrong)
    assert rows["cpu"].outcome is Outcome.OK and rows["cpu"].calls_per_sample == 1
    assert len(rows["cpu"].samples_us) == ROUNDS and (rows["cpu"].min_us or 0) > 0
    assert "on the host" in rows["cpu"].remark
    assert rows["cpu"].registers is None and rows["cpu"].flags == ""
    assert rows["halved"].outcome is Outcome.WRONG and rows["halved"].samples_us == ()


def test_sources_that_do_not_compile_leave_the_others_alone(
    nvcc: None, monkeypatch: pytest.MonkeyPatch, bench: Bench
) -> None:
    monkeypatch.setattr(candidates_module, "compile_many", compile_many)
    text = 'extern "C" __global__ void bad() { int i = nothing; }'
    bad = replace(variant("bad"), source=PlainSource("bad", text, ("bad",)))
    ours = [bad, *copies(ROWS, COLS), peer("a_peer")]
    rejected, driver, one, four, theirs = compiled(ours, PROVENANCE.arch, SIX_ROUNDS.options)
    assert driver.binary is theirs.binary is None
    assert isinstance(one.binary, Binary) and one.binary is four.binary
    assert one.binary.arch == PROVENANCE.arch
    row = bench.prepare(rejected)
    assert row.outcome is Outcome.FAILED
    assert "nvcc rejected bad.cu" in row.reason and '"nothing" is undefined' in row.reason
