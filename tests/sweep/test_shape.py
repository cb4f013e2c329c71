"""The search on one shape: who gets how many rounds, and what is recorded whatever ends it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from kgen.execute import find_target
from kgen.specs.types import BOTH_FLOAT32, Types, find_types
from kgen.store.measurement import Kind, Measurement, Provenance
from kgen.sweep.halving import Halving, Search
from kgen.sweep.jobs import Job
from kgen.sweep.measure import How, run_jobs
from kgen.timing.candidates import of_targets
from kgen.timing.protocol import Protocol
from tests.sweep.fake_gpus import FakeGpu, compile_fakes

ROWS, COLS = 4, 64
# No candidate is ever known precisely enough, so every rung takes all the rounds that it may.
PROTOCOL = Protocol(min_rounds=8, max_rounds=8, precision=0.0)
THREADS = range(32, 1025, 32)
FASTEST = "v5:threads=32"


class Told:
    """Keeps what a search tells: rows, and how many samples of whom it took."""

    def __init__(self, interrupt_at: int = 0) -> None:
        self.rows: list[Measurement] = []
        self.taken: Counter[str] = Counter()
        self.begun: dict[str, Sequence[float]] = {}
        self.interrupt_at = interrupt_at

    def begin(self, row: Measurement, samples_us: Sequence[float] = ()) -> None:
        self.begun[row.variant] = samples_us

    def add_round(self, rows: Mapping[str, Measurement], taken: Mapping[str, float]) -> None:
        self.taken.update(taken.keys())

    def finish(self, row: Measurement) -> None:
        self.rows.append(row)

    def prepared(self, row: Measurement) -> None: ...

    def finished(self, row: Measurement) -> None: ...

    def sampled(self, name: str, samples_us: Sequence[float]) -> None:
        if self.interrupt_at and len(samples_us) >= self.interrupt_at:
            raise KeyboardInterrupt

    @property
    def ours(self) -> dict[str, Measurement]:
        rows = [row for row in self.rows if row.kind is Kind.VARIANT]
        assert len({row.variant for row in rows}) == len(rows), "a candidate has two rows"
        return {row.variant: row for row in rows}


@pytest.fixture(autouse=True)
def fake_nvcc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("kgen.timing.candidates.compile_many", compile_fakes)
    yield


def searched(
    told: Told, folder: Path, search: Search, earlier_rounds: int = 0, types: Types = BOTH_FLOAT32
) -> Told:
    axes = f"dtype={types.dtype},out_dtype={types.out_dtype}"
    targets = [find_target(f"v5:threads={threads},{axes}") for threads in THREADS]
    candidates = of_targets(targets, ROWS, COLS)
    taken = {
        one.name: (float(threads),) * earlier_rounds
        for one, threads in zip(candidates, THREADS, strict=True)
    }
    job = Job(ROWS, COLS, candidates, earlier=taken, types=types)
    how = How(
        on="gpu",
        protocol=PROTOCOL,
        provenance=Provenance(run="a run", measured_at="", device="a fake", arch="sm_90"),
        search=search,
        halving=Halving(finalists=2),
        keep_all=True,
        open_device=FakeGpu(folder),
    )
    run_jobs([job], how, told, told)
    return told


def rounds_of(rows: Mapping[str, Measurement]) -> Counter[int]:
    return Counter(len(row.samples_us) for row in rows.values())


def test_the_slower_three_quarters_leave_rung_by_rung(tmp_path: Path) -> None:
    told = searched(Told(), tmp_path, Search.HALVING)
    rows = told.ours
    assert len(rows) == len(THREADS) and all(row.is_complete for row in rows.values())
    # 32 have 2 rounds, 8 of them 4, and the finalists go on, with copies, as long as they may.
    assert rounds_of(rows) == {2: 24, 4: 6, 4 + 8: 2}
    assert told.taken["v5:threads=1024"] == 2 and told.taken[FASTEST] == told.taken["copy_one"] + 4
    assert min(rows.values(), key=lambda row: row.median_us or 0).variant.startswith(
        "v5:threads=32"
    )
    assert [row.variant for row in rows.values() if row.is_tied] == [FASTEST]
    assert rows[FASTEST].percent_of_copy and rows[FASTEST].copy_us
    assert sum(row.kind is Kind.COPY for row in told.rows) == 3


def test_a_full_search_gives_all_the_same(tmp_path: Path) -> None:
    assert rounds_of(searched(Told(), tmp_path, Search.FULL).ours) == {8: len(THREADS)}


def test_copies_and_variants_are_of_the_jobs_types(tmp_path: Path) -> None:
    pair = find_types("bfloat16", "float32")
    rows = searched(Told(), tmp_path, Search.HALVING, types=pair).rows
    assert {row.outcome for row in rows} == {"ok"}
    assert {(row.dtype, row.out_dtype) for row in rows} == {pair}
    assert sum(row.kind is Kind.COPY for row in rows) == 2  # the driver cannot convert


def test_an_interrupt_leaves_one_row_of_each(tmp_path: Path) -> None:
    told = Told(interrupt_at=4)
    with pytest.raises(KeyboardInterrupt):
        searched(told, tmp_path, Search.HALVING)
    rows = told.ours
    assert len(rows) == len(THREADS)
    assert sum(row.is_complete for row in rows.values()) == 24
    assert all(row.median_us for row in rows.values())


def test_samples_of_an_earlier_run_are_not_taken_again(tmp_path: Path) -> None:
    told = searched(Told(), tmp_path, Search.HALVING, earlier_rounds=2)
    assert told.begun[FASTEST] == [32.0, 32.0]
    assert rounds_of(told.ours) == {2: 24, 4: 6, 4 + 8: 2}
    assert told.taken["v5:threads=1024"] == 0 and told.taken[FASTEST] == 2 + 8
