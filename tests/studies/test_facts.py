"""Facts from the compilers that are installed: counts on the CPU, registers from nvcc."""

from __future__ import annotations

import pytest

from kgen.studies import registers
from kgen.studies.claims import Fact, statements
from kgen.studies.counts import REPORTED, count_reported
from kgen.studies.facts import Facts, Metric
from kgen.studies.judge import judge_part
from kgen.studies.tables import Study
from kgen.studies.times import Times
from kgen.studies.verdicts import Conclusion
from kgen.toolchain import find

FACTS = Facts("sm_75", {})


def test_counts_are_of_all_launches(cxx: None) -> None:
    loads = FACTS.value(Metric.LOADS, "t1", 2, 2048)
    stores = FACTS.value(Metric.STORES, "t1", 2, 2048)
    assert stores == 2 * 2048 // 32 and loads >= 3 * stores
    assert FACTS.value(Metric.ACCESSES, "t1", 2, 2048) == loads + stores
    assert FACTS.quotient(Metric.REDUCTIONS, "v8", "v5", 9, 257) == pytest.approx(1 / 9)


def test_the_reported_counts_are_ours(cxx: None, monkeypatch: pytest.MonkeyPatch) -> None:
    small = tuple(row for row in REPORTED if row.cols == 257)
    monkeypatch.setattr("kgen.studies.counts.REPORTED", small)
    counted = count_reported(FACTS)
    assert [row.variant for row in counted] == ["v5", "v8"] and all(row.agrees for row in counted)


@pytest.mark.parametrize(("cols", "vectors"), [(257, 1), (1024, 1), (1028, 2), (4096, 4)])
def test_vectors_of_a_thread(cols: int, vectors: int) -> None:
    assert FACTS.value(Metric.VECTORS, "v6_fetch", 1, cols) == vectors


def test_occupancy_follows_the_architecture(nvcc: None) -> None:
    turing = FACTS.value(Metric.OCCUPANCY, "v8", 1024, 4096)
    assert turing == 100
    assert Facts("sm_90", {}).value(Metric.OCCUPANCY, "v3", 128, 16384) < 100


def test_registers_beside_the_reports(nvcc: None) -> None:
    compiled = {row.variant: row for row in registers.compile_reported()}
    assert list(compiled) == [row.variant for row in registers.REPORTED]
    runtime, v8 = compiled["v3:trip=runtime"].own, compiled["v8"].own
    assert runtime and runtime.stack_bytes == 16 and runtime.spill_bytes == 0
    assert v8 and v8.shared_bytes == 0 and v8.registers
    assert all(row.own and row.own.occupancy and not row.reason for row in compiled.values())


def test_without_nvcc_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KGEN_NVCC", raising=False)
    monkeypatch.setattr(find, "_candidates", lambda name: iter(()))
    compiled = registers.compile_reported()
    assert all(row.own is None and "nvcc" in row.reason for row in compiled)


def test_the_profiler_has_what_is_asked_of_it() -> None:
    from kgen.profile import METRICS

    assert {str(metric) for metric in Metric if metric.is_profiled} <= {
        metric.key for metric in METRICS
    }


def test_our_countable_facts_hold(cxx: None) -> None:
    """Nobody else's figures stand beside these: what the executor counts is what they rest on."""
    parts = [p for s in statements(frozenset({Study.OURS})) for p in s.parts if isinstance(p, Fact)]
    judged = {p.words: judge_part(p, Times([], "no times"), FACTS, "cold").verdict for p in parts}
    assert len(judged) == 9 and set(judged.values()) == {Conclusion.HOLDS}
