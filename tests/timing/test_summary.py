"""What samples make of rows: rates, speed-ups, ties, and remarks on what looks odd."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from kgen.errors import CompileFailed
from kgen.execute import find_target
from kgen.gpu.nvml import Sensors
from kgen.specs.types import find_types
from kgen.store.measurement import Kind, Measurement, Outcome
from kgen.timing.candidates import of_targets
from kgen.timing.protocol import REPORT, ROTATED, Protocol
from kgen.timing.summary import Sensed, blank, summarized
from tests.timing.fakes import COLS, PROVENANCE, ROWS, compile_fakes, peer, variant

# Twelve rounds, slower and slower machine: what is paired is not told by the medians alone.
ROUNDS = [1 + 0.001 * number for number in range(12)]


def steady(us: float) -> list[float]:
    return [us * factor for factor in ROUNDS]


def summary(
    samples: Mapping[str, Sequence[float]],
    baseline: str = "a",
    protocol: Protocol = ROTATED,
    host_us: Mapping[str, float] | None = None,
    remark: str = "",
) -> dict[str, Measurement]:
    """Summarise samples by name; names with `copy` in them are copies."""
    kinds = {name: Kind.COPY if "copy" in name else Kind.VARIANT for name in samples}
    candidates = [variant(name, kind) for name, kind in kinds.items()]
    rows = [replace(blank(one, protocol, PROVENANCE), remark=remark) for one in candidates]
    finished = summarized(rows, samples, baseline, protocol, host_us or {}, Sensed())
    assert [row.variant for row in finished] == list(samples)
    return {row.variant: row for row in finished}


def test_samples_become_times_and_rates() -> None:
    row = summary({"a": [2.0, 1.0, 9.0, 3.0, 2.5]})["a"]
    assert row.samples_us == (2.0, 1.0, 9.0, 3.0, 2.5)
    assert (row.median_us, row.mean_us, row.min_us, row.max_us) == (2.5, 3.5, 1.0, 9.0)
    assert (row.low_us, row.high_us) == (1.0, 9.0)
    assert row.gb_per_s == pytest.approx(2 * ROWS * COLS * 4 / 2.5 / 1e3)
    assert row.copy_us is None and row.percent_of_copy is None


@pytest.mark.parametrize(
    ("types", "bytes_each"), [(("float16",), 4), (("bfloat16", "float32"), 6), (("float64",), 16)]
)
def test_rates_count_what_the_types_move(types: tuple[str, ...], bytes_each: int) -> None:
    pair = find_types(*types)
    names = {"a": Kind.VARIANT, "copy": Kind.COPY}
    found = [replace(variant(name, kind), types=pair) for name, kind in names.items()]
    rows = [blank(one, ROTATED, PROVENANCE) for one in found]
    assert {(row.dtype, row.out_dtype) for row in rows} == {pair}
    samples = {"a": [2.0] * 6, "copy": [1.5] * 6}
    row, copy = summarized(rows, samples, "a", ROTATED, {}, Sensed())
    assert row.gb_per_s == pytest.approx(ROWS * COLS * bytes_each / 2.0 / 1e3)
    assert copy.gb_per_s == pytest.approx(ROWS * COLS * bytes_each / 1.5 / 1e3)
    assert row.percent_of_copy == 75


def test_speedups_are_of_paired_rounds_with_their_interval() -> None:
    # The quotient of the rounds is 2 nearly always; that of the medians is not.
    a = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]
    b = [us / 2 for us in a]
    b[0], b[7] = 1.0, 32.0
    row = summary({"a": a, "b": b})["b"]
    assert row.baseline == "a" and row.speedup == 2
    assert (row.speedup_low, row.speedup_high) == (1, 4)
    base = summary({"a": a, "b": b})["a"]
    assert (base.speedup, base.speedup_low, base.speedup_high) == (1, 1, 1)


def test_without_the_baselines_samples_there_is_no_speedup() -> None:
    row = summary({"b": steady(1)}, baseline="a")["b"]
    assert row.speedup is None and row.baseline == ""


def test_ties_are_of_who_cannot_be_told_from_the_fastest() -> None:
    other = [us * (1.002 if number % 2 else 0.9985) for number, us in enumerate(steady(1))]
    rows = summary({"a": steady(1), "b": other, "c": steady(1.01), "copy": steady(0.5)})
    assert {name: row.is_tied for name, row in rows.items()} == {
        "a": True,
        "b": True,
        "c": False,
        "copy": None,
    }


def test_times_are_in_percent_of_the_fastest_copy() -> None:
    rows = summary({"a": steady(4), "copy_1": steady(3), "copy_2": steady(2)})
    assert rows["a"].copy_us == rows["copy_2"].median_us
    assert rows["a"].percent_of_copy == pytest.approx(50)
    assert rows["copy_1"].percent_of_copy == pytest.approx(200 / 3)


@pytest.mark.parametrize(("us", "remark"), [(1.0, ""), (0.99, "")])
def test_as_fast_as_a_copy_is_no_wonder(us: float, remark: str) -> None:
    assert summary({"a": steady(us), "copy": steady(1)})["a"].remark == remark


def test_faster_than_a_copy_is_remarked() -> None:
    rows = summary({"a": steady(0.97), "copy": steady(1), "copy_fast": steady(0.96)})
    assert rows["a"].remark == ""
    rows = summary({"a": steady(0.97), "copy": steady(1)})
    assert rows["a"].remark == "faster than a copy of the same bytes"
    assert rows["copy"].remark == ""


def test_a_drift_is_remarked() -> None:
    slower = [1.0] * 6 + [1.05] * 6
    protocol = replace(ROTATED, precision=1)
    assert summary({"a": slower}, protocol=protocol)["a"].remark == "drifted by +5.0%"
    assert summary({"a": slower[::-1]}, protocol=protocol)["a"].remark == "drifted by -4.8%"
    assert summary({"a": [1.0] * 6 + [1.015] * 6}, protocol=protocol)["a"].remark == ""


def test_too_little_precision_is_remarked_of_rounds() -> None:
    wide = [1.0, 1.02] * 10
    assert summary({"a": wide})["a"].remark == "not known as precisely as asked"
    assert summary({"a": wide}, protocol=replace(ROTATED, precision=0.011))["a"].remark == ""
    assert summary({"a": wide}, protocol=REPORT)["a"].remark == ""


@pytest.mark.parametrize(("host_us", "bound"), [(0.89, False), (0.91, True), (4.0, True)])
def test_a_time_near_the_hosts_own_is_remarked_without_graphs(host_us: float, bound: bool) -> None:
    samples, host = {"a": [1.0] * 12}, {"a": host_us}
    remark = f"host-bound: issuing a call takes {host_us:.1f} us" if bound else ""
    assert summary(samples, protocol=REPORT, host_us=host)["a"].remark == remark
    assert summary(samples, host_us=host)["a"].remark == ""


def test_remarks_add_up() -> None:
    row = summary({"a": [1.0] * 6 + [1.05] * 6, "copy": [2.0] * 12}, remark="not cold")["a"]
    assert row.remark == (
        "not cold; faster than a copy of the same bytes; not known as precisely as asked; "
        "drifted by +5.0%"
    )


def test_sensors_are_those_before_and_after() -> None:
    sensed = Sensed(Sensors(1980, 40), Sensors(1755, 55))
    row = blank(variant("a"), ROTATED, PROVENANCE)
    (row,) = summarized([row], {"a": [1.0]}, "", ROTATED, {}, sensed)
    assert (row.sm_mhz_before, row.celsius_before) == (1980, 40)
    assert (row.sm_mhz_after, row.celsius_after) == (1755, 55)


def test_rows_without_samples_stay_as_they_are() -> None:
    row = replace(blank(variant("a"), ROTATED, PROVENANCE), outcome=Outcome.WRONG, reason="it is")
    assert summarized([row], {}, "a", ROTATED, {}, Sensed()) == [row]


def test_who_left_early_is_compared_by_the_rounds_that_it_had() -> None:
    samples = {"a": [2.0] * 6 + [8.0] * 6, "b": [1.0] * 6, "c": [2.0] * 6 + [8.0] * 6}
    rows = summary(samples)
    assert (rows["b"].speedup, rows["b"].speedup_low, rows["b"].speedup_high) == (2, 2, 2)
    assert [row.is_tied for row in rows.values()] == [True, False, True]
    assert [row.speedup for row in summary(samples, baseline="b").values()] == [0.5, 1, 0.5]


def test_a_blank_row_says_what_was_asked_and_compiled() -> None:
    (candidate,) = of_targets([find_target("v6:vec=4")], ROWS, COLS)
    kernel = candidate.source.kernels[0] if candidate.source else ""
    (binary,) = compile_fakes([variant(kernel).source], "sm_90", ROTATED.options)  # type: ignore[list-item]
    row = blank(replace(candidate, binary=binary), replace(ROTATED, seed=7), PROVENANCE)
    assert (row.variant, row.kind, row.rows, row.cols) == (candidate.name, Kind.VARIANT, ROWS, COLS)
    assert (row.input_name, row.seed, row.protocol_name, row.l2) == (
        "uniform",
        7,
        "rotated",
        "cold",
    )
    assert json.loads(row.spec)["vec_size"] == 4 and len(row.source_hash) == 64
    assert row.registers == 31 and row.outcome is Outcome.OK


def test_a_blank_row_tells_why_a_candidate_cannot_run() -> None:
    rejected = replace(variant("a"), binary=CompileFailed("nvcc rejected a.cu"))
    row = blank(rejected, ROTATED, PROVENANCE)
    assert (row.outcome, row.reason) == (Outcome.FAILED, "nvcc rejected a.cu")
    refused = replace(variant("a"), source=None, plan=None, reason="too long")
    row = blank(refused, ROTATED, PROVENANCE)
    assert (row.outcome, row.reason) == (Outcome.REFUSED, "too long")


def test_only_kernels_have_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    assert blank(variant("a"), ROTATED, PROVENANCE).flags == "--std=c++17 -O3"
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-DX")
    assert blank(variant("a"), ROTATED, PROVENANCE).flags == "--std=c++17 -O3 -DX"
    assert blank(peer("b"), ROTATED, PROVENANCE).flags == ""
