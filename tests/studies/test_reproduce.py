"""Reproductions on machines that are made up: tables, verdicts, dissections, files."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgen.errors import MissingTool, UsageError
from kgen.store.measurement import Outcome
from kgen.studies import counts, facts, registers
from kgen.studies import reproduce as reproduction
from kgen.studies.facts import Facts, Metric
from kgen.studies.grids import grids
from kgen.studies.markdown import markdown
from kgen.studies.reproduce import needed, reproduce
from kgen.studies.result import (
    PartResult,
    StatementResult,
    StudyResult,
    read_result,
    write_result,
)
from kgen.studies.tables import Study
from kgen.studies.verdicts import Conclusion, NotMeasured
from tests.studies.fake import Machine

REPORT = frozenset({Study.REPORT})
ODD, FEW, LONG = (1025, 257), (128, 4096), (128, 16384)
# What the report's profiler said.
PROFILES = {
    ("v5", *ODD): {
        "warp_instructions": 2_442_575,
        "achieved_occupancy_percent": 87.2,
        "issued_warps": 0.7,
    },
    ("v8", *ODD): {
        "warp_instructions": 634_580,
        "achieved_occupancy_percent": 63.4,
        "issued_warps": 0.54,
    },
    ("v2", *FEW): {
        "dram_bytes_read": 2.61e6,
        "l1_hit_percent": 38.4,
        "stall_long_scoreboard_percent": 55.81,
    },
    ("v3", *FEW): {
        "dram_bytes_read": 2.41e6,
        "l1_hit_percent": 0.0,
        "stall_long_scoreboard_percent": 35.11,
    },
    ("v3", *LONG): {"achieved_occupancy_percent": 24.91},
    ("v3:threads=512", *LONG): {"achieved_occupancy_percent": 49.47},
    ("v4", *LONG): {"uniform_branch_percent": 100.0},
    ("v4_opt", *LONG): {"uniform_branch_percent": 100.0},
    ("v4_opt:update=online_branch", *LONG): {"uniform_branch_percent": 85.54},
}
# Accesses that our statements are about, in proportion, and what else is counted for them.
SHORT = "v10:threads_per_row=8,items=auto"
OURS = {
    **{(SHORT, 1024, 32): 1.0, ("v8", 1024, 32): 4.0},
    **{("v11:threads=512", 64, 4097): 1.0, ("v7", 64, 4097): 3.0},
    **{("v12:items=auto", 1024, 127): 1.0, ("v8", 1024, 127): 6.0},
    **{("v13:blocks_per_row=16", 4, 65536): 1.0, ("v6_double", 4, 65536): 2.0},
}
COUNTED = {
    Metric.REDUCTIONS: {"v5": 9225.0, "v8": 1025.0, SHORT: 1025.0 / 4},
    Metric.BARRIERS: {"v11:threads=512": 1024.0, "v7:threads=512": 2048.0},
    Metric.EXPONENTIALS: {"v11:threads=512": 1.375, "v7:threads=512": 3.5625},
    Metric.SECTORS: {"v12:items=auto": 32512.0, "v8": 59520.0},
}


@pytest.fixture(autouse=True)
def no_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is counted or compiled here: the report's own counts and occupancies are taken."""

    def value(self: Facts, metric: facts.Metric, variant: str, rows: int, cols: int) -> float:
        if metric.is_profiled:
            return self._profiled(metric, variant, rows, cols)
        if metric is Metric.OCCUPANCY:
            return {"v3": 25.0, "v3:threads=512": 50.0}[variant]
        if metric in COUNTED:
            return COUNTED[metric][variant]
        if metric is Metric.VECTORS:
            return 1
        if (variant, rows, cols) in OURS:
            return OURS[variant, rows, cols]
        (row,) = [
            r for r in counts.REPORTED if (r.variant, r.rows, r.cols) == (variant, rows, cols)
        ]
        stores = row.stores if metric is not Metric.LOADS else 0
        return stores if metric is Metric.STORES else row.loads + stores

    monkeypatch.setattr(Facts, "value", value)
    monkeypatch.setattr(reproduction, "compile_reported", lambda: registers.REPORTED)


def part(result: StudyResult, number: int, words: str) -> PartResult:
    (statement,) = [s for s in result.statements if s.number == number]
    (found,) = [p for p in statement.parts if words in p.words]
    return found


def verdicts(result: StudyResult, l2: str) -> dict[int, Conclusion]:
    return {statement.number: statement.verdicts[l2] for statement in result.statements}


def all_parts(result: StudyResult) -> Iterator[tuple[StatementResult, PartResult]]:
    return ((s, p) for s in result.statements for p in s.parts)


def test_on_the_reports_machine_all_statements_hold() -> None:
    result = reproduce(Machine(), profiles=PROFILES)
    assert result.l2_states == ("warm", "cold")
    for l2 in result.l2_states:
        assert verdicts(result, l2) == dict.fromkeys(range(1, 19), Conclusion.HOLDS)


def test_a_shape_is_measured_once_in_each_state() -> None:
    machine = Machine()
    reproduce(machine)
    assert [(rows, cols, l2) for _, rows, cols, l2 in machine.calls] == [
        (*shape, l2) for shape in needed() for l2 in ("warm", "cold")
    ]
    assert all(variants == needed()[rows, cols] for variants, rows, cols, _ in machine.calls)


def test_opposite_times_fall_in_their_state_alone() -> None:
    result = reproduce(Machine(changes={("v6_double", "cold"): 0.9}), REPORT)
    slower = part(result, 3, "v6 is faster than v6_double")
    assert slower.judgements["warm"].verdict is Conclusion.HOLDS
    assert slower.judgements["cold"].verdict is Conclusion.FAILS
    figure = slower.judgements["cold"].figure
    assert figure and figure.low < 180.6 / (0.9 * 191.9) < figure.high
    assert verdicts(result, "cold")[3] is Conclusion.FAILS


def test_a_drift_of_all_does_not_hide_what_the_noise_of_each_does() -> None:
    fine = part(reproduce(Machine(), REPORT), 2, "v4_opt is faster than v4").judgements
    rough = part(reproduce(Machine(noise=0.1), REPORT), 2, "v4_opt is faster than v4").judgements
    assert {judged.verdict for judged in fine.values()} == {Conclusion.HOLDS}
    assert {judged.verdict for judged in rough.values()} == {Conclusion.NOISE}


def test_without_a_profile_causes_are_not_measured() -> None:
    result = reproduce(Machine(), REPORT)
    instructions = part(result, 8, "74%").judgements["warm"]
    assert instructions.verdict is Conclusion.UNKNOWN
    assert instructions.reason == "warp_instructions of v8 needs kgen profile"
    found = verdicts(result, "warm")
    assert [n for n in found if found[n] is Conclusion.UNKNOWN] == [7, 8, 9, 10]


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.FAILED, Outcome.WRONG])
def test_what_could_not_be_timed_has_its_reason(outcome: Outcome) -> None:
    result = reproduce(Machine(broken={"v7": outcome}), REPORT)
    judged = part(result, 4, "v7 is faster than v3").judgements["warm"]
    assert judged.verdict is Conclusion.UNKNOWN
    assert judged.reason == f"v7 at 1024 x 4096 was {outcome}: for a test"
    assert part(result, 2, "v3 is faster than v2").judgements["warm"].verdict is Conclusion.HOLDS
    (short,) = [t for t in result.tables if t.title == "Short rows"]
    timings = {cell.variant: cell.timings[0] for cell in short.cells}
    assert timings["v7"].outcome is outcome and timings["v7"].median_us is None
    assert timings["v5"].median_us
    (sweep,) = [s for s in result.sweeps if s.b == "v7"]
    assert sweep.ratios == {} and "for a test" in sweep.reasons["warm"]


def test_rounds_that_are_not_paired_are_not_compared() -> None:
    machine = Machine()

    def measure(variants: list[str], rows: int, cols: int, l2: str) -> list:
        found = machine(variants, rows, cols, l2)
        return [
            dataclasses.replace(m, samples_us=m.samples_us[:20]) if m.variant == "v1" else m
            for m in found
        ]

    judged = part(reproduce(measure, REPORT), 2, "v2 is faster than v1").judgements["warm"]
    assert judged.verdict is Conclusion.UNKNOWN
    assert judged.reason == "v2 and v1 have 40 and 20 rounds in the run"


def test_without_a_gpu_only_facts_are_judged() -> None:
    result = reproduce(None)
    judged = [(p, j) for _, p in all_parts(result) for j in p.judgements.values()]
    reasons = {j.reason for _, j in judged if j.verdict is Conclusion.UNKNOWN}
    assert "times need a GPU" in reasons and len(reasons) > 1
    held = {p.words for p, j in judged if j.verdict is Conclusion.HOLDS}
    assert {"v3 issues a third of v2's loads", "v6_double issues a third of v6's accesses"} <= held
    assert all(row.agrees for row in result.counts)
    assert [grid.title for grid in grids(result)] == [
        "Statements of the studies",
        "Global loads and stores, in warp instructions",
        "On sm_75: the report / here",
    ]


def test_a_missing_compiler_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Facts, *job: object) -> float:
        raise MissingTool("there is no g++")

    monkeypatch.setattr(Facts, "value", refuse)
    result = reproduce(None, REPORT)
    loads = part(result, 9, "a third").judgements["warm"]
    assert (loads.verdict, loads.reason) == (Conclusion.UNKNOWN, "there is no g++")
    assert {row.reason for row in result.counts} == {"there is no g++"}
    assert not any(row.agrees for row in result.counts)


def test_dissections_say_what_a_difference_means() -> None:
    changes = {("v5:threads=32", "warm"): 0.5, ("v7", "cold"): 3.0}
    result = reproduce(Machine(changes=changes), REPORT, profiles=PROFILES)
    pairs = {
        (pair.a, pair.b, pair.rows): pair for d in result.dissections for pair in d.comparisons
    }
    without_waiting = pairs["v5:topology=warp,threads=32", "v5:threads=32", 1025]
    warm, cold = (without_waiting.readings[l2] for l2 in ("warm", "cold"))
    assert warm.ratio and warm.ratio.low > 1.9
    assert warm.words == "shared memory and barriers of one warp are free"
    assert cold.ratio and cold.ratio.contains_one and cold.words == "no difference to be seen"
    recurrence = pairs["v7", "v7:update=three_pass", 1024].readings
    assert "the recurrence" in recurrence["cold"].words
    barriers = result.dissections[0]
    assert barriers.metrics["v5 at 1025 x 257"]["warp_instructions"] == 2_442_575


def test_the_crossover_of_v7_and_v8() -> None:
    result = reproduce(Machine(), REPORT)
    (sweep,) = result.sweeps
    (crossing,) = sweep.crossovers["warm"]
    assert crossing.faster_below == "v8"
    assert crossing.at == pytest.approx(600, rel=0.02)  # the machine's, by interpolation
    assert crossing.low and crossing.high and crossing.low < crossing.at < crossing.high
    assert "v8 is faster below N = " in markdown(result)


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    machine = Machine(broken={"v9": Outcome.FAILED})
    result = reproduce(machine, profiles=PROFILES)
    path = tmp_path / "folder" / "result.json"
    write_result(path, result)
    assert read_result(path) == result
    assert json.loads(path.read_text())["tables"][0]["cells"][0]["timings"][0]["l2"] == "warm"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 2}', '{"format": 1, "tables": 3}'])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"result\.json is no result of kgen reproduce"):
        read_result(path)


def test_markdown_has_all_figures() -> None:
    result = reproduce(Machine(), l2_states=("cold",), profiles=PROFILES)
    text = markdown(result)
    assert "### v1 to v4\\_opt at 1024 x 4096, us; figures of the report, on a Tesla T4" in text
    (line,) = [row for row in text.splitlines() if row.startswith("| v9:grid=128 ")]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[1:3] == ["22.3 - 23.1", "1.27"] and cells[4] in ("1.27", "1.28")
    assert cells[3].endswith("%") and 20 < float(cells[3].split()[0]) < 30
    assert all(len(set(widths(table))) == 1 for table in text.split("\n\n") if table[0] == "|")
    (k2,) = [row for row in text.splitlines() if row.startswith("| k2 ")]
    assert 1.3 < float(k2.split("|")[4].split()[0]) < 2.1  # in ms, as the study's
    assert "| 1 | k1 is about 50 times slower than k4" in text and "HOLDS" in text


def widths(table: str) -> list[int]:
    return [line.replace("\\|", "").count("|") for line in table.splitlines()]


def test_facts_need_a_profile_that_has_them() -> None:
    known = Facts("sm_75", {("v5", 1, 2): {"warp_instructions": 8.0, "issued_warps": None}})
    assert known.value(Metric.INSTRUCTIONS, "v5", 1, 2) == 8
    with pytest.raises(NotMeasured, match="issued_warps of v5 needs kgen profile"):
        known.value(Metric.ISSUE_RATE, "v5", 1, 2)
    with pytest.raises(NotMeasured, match="of v5 is 0"):
        Facts("sm_75", {("v5", 1, 2): {"warp_instructions": 0.0}}).quotient(
            Metric.INSTRUCTIONS, "v5", "v5", 1, 2
        )
