"""What a sweep finds in its database: who is finished, who goes on, who is measured anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kgen.specs.types import find_types
from kgen.store.database import open_store
from kgen.store.measurement import Measurement, Outcome, Provenance
from kgen.sweep.jobs import Job, jobs_of, unmeasured
from kgen.sweep.plan import plan
from kgen.sweep.space import Space
from kgen.timing.protocol import L2, Protocol
from kgen.timing.summary import blank

PLACE = Provenance(
    run="first", measured_at="2026-01-02", device="a fake", device_uuid="GPU-1", toolchain="nvcc 1"
)
PLAN = plan(Space.make(["v5"], [8], [64, 100]))
PROTOCOL = Protocol()


def job_after(path: Path, change: Callable[[Measurement], Measurement]) -> Job:
    """Return the first shape's job of a later run, the row of an earlier one being changed."""
    later = replace(PLACE, run="second", measured_at="2026-02-02", device_uuid="GPU-2")
    with open_store(path / "db.sqlite") as store:
        (candidate,) = jobs_of(PLAN, store, PROTOCOL, PLACE)[0].candidates
        store.add(change(replace(blank(candidate, PROTOCOL, PLACE), samples_us=(1.0, 2.0))))
        first, second = jobs_of(PLAN, store, PROTOCOL, later)
    assert len(second.candidates) == 1, "another shape has nothing to do with it"
    return first


def test_a_complete_row_is_not_measured_again(tmp_path: Path) -> None:
    job = job_after(tmp_path, lambda row: row)
    assert job.candidates == [] and [row.variant for row in job.done] == ["v5"]


def test_a_job_and_its_candidates_have_the_types_of_the_plan(tmp_path: Path) -> None:
    axes = {"dtype": ["bfloat16"], "out_dtype": ["float32"]}
    with open_store(tmp_path / "db.sqlite") as store:
        (job,) = jobs_of(plan(Space.make(["v5"], [8], [64], axes)), store, PROTOCOL, PLACE)
    (candidate,) = job.candidates
    assert job.types == candidate.types == find_types("bfloat16", "float32")


def test_an_incomplete_one_goes_on_from_its_samples(tmp_path: Path) -> None:
    job = job_after(tmp_path, lambda row: replace(row, is_complete=False))
    assert job.earlier == {"v5": (1.0, 2.0)} and len(job.candidates) == 1 and not job.done


@pytest.mark.parametrize(
    "change",
    [
        lambda row: replace(row, protocol=Protocol(l2=L2.WARM).as_json()),
        lambda row: replace(row, protocol=Protocol(seed=1).as_json()),
        lambda row: replace(row, source_hash="another text"),
        lambda row: replace(row, rows=9),
        lambda row: replace(row, provenance=replace(PLACE, device="another")),
        lambda row: replace(row, provenance=replace(PLACE, toolchain="nvcc 2")),
    ],
    ids=["l2", "seed", "source", "rows", "device", "toolchain"],
)
def test_what_was_measured_otherwise_does_not_count(
    tmp_path: Path, change: Callable[[Measurement], Measurement]
) -> None:
    job = job_after(tmp_path, change)
    assert len(job.candidates) == 1 and not job.done and not job.earlier


def test_what_was_pruned_is_measured_by_a_sweep_that_prunes_nothing(tmp_path: Path) -> None:
    job = job_after(tmp_path, lambda row: replace(row, outcome=Outcome.PRUNED))
    assert job.done and not job.candidates
    with open_store(tmp_path / "db.sqlite") as store:
        job = jobs_of(PLAN, store, PROTOCOL, PLACE, keep_all=True)[0]
        assert job.candidates and not job.done


def test_what_is_unmeasured_is_what_the_jobs_have(tmp_path: Path) -> None:
    job_after(tmp_path, lambda row: row)
    with open_store(tmp_path / "db.sqlite") as store:
        for protocol in (PROTOCOL, Protocol(seed=1)):
            jobs = jobs_of(PLAN, store, protocol, PLACE)
            left = [(one.rows, one.cols) for job in jobs for one in job.candidates]
            points = unmeasured(PLAN, store, protocol, PLACE)
            assert [(point.rows, point.cols) for point in points] == left
