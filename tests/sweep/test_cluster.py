"""Sweeps on a real cluster of two workers: their rows, and what losing workers costs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kgen import cpu
from kgen.errors import MissingTool, UsageError
from kgen.specs.variants import checked
from kgen.store.measurement import Kind, Measurement, Outcome, Provenance
from kgen.sweep.cluster import connect as cluster_module
from kgen.sweep.cluster import distribute as distributed_module
from kgen.sweep.cluster import local, workers
from kgen.sweep.cluster.connect import connected
from kgen.sweep.cluster.distribute import chunks, run_distributed
from kgen.sweep.cluster.local import local_cluster
from kgen.sweep.cluster.tasks import Describe, Kept, WorkerFacts
from kgen.sweep.cluster.workers import open_pool
from kgen.sweep.jobs import Job
from kgen.sweep.measure import How, run_jobs
from kgen.timing.candidates import of_targets
from kgen.timing.protocol import Protocol
from kgen.timing.provenance import this_run
from tests.sweep.fake_gpus import FakeGpu, is_gone, one_model, two_models

pytestmark = pytest.mark.slow

pytest.importorskip("distributed")

ROWS, COLS = 4, 64
VARIANTS = [f"v5:threads={threads}" for threads in (512, 32, 128, 64, 1024)]
NOWHERE = Provenance(run="", measured_at="", device="", commit="a commit")
PROTOCOL = Protocol(min_rounds=4, max_rounds=4)
Rows = dict[str, Measurement]


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster with two workers."""
    with local_cluster(2, "gpu") as address:
        yield address


@pytest.fixture
def scheduler(cluster: str) -> str:
    """The same, with both workers there again after a test that killed one."""
    with connected(cluster) as client:
        client.wait_for_workers(2, timeout=30)
    return cluster


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have tasks of a few candidates each."""
    monkeypatch.setattr(distributed_module, "LEAST_CHUNK", {"gpu": 2, "cpu": 2})
    monkeypatch.setattr(distributed_module, "TASKS_A_WORKER", 1)


def a_job(variants: Sequence[str] = VARIANTS) -> Job:
    return Job(ROWS, COLS, of_targets([checked(variant) for variant in variants], ROWS, COLS))


def on_fakes(gpu: FakeGpu, **settings: object) -> How:
    how = How(on="gpu", protocol=PROTOCOL, provenance=NOWHERE, keep_all=True, open_device=gpu)
    return replace(how, halving=replace(how.halving, finalists=1), **settings)  # type: ignore[arg-type]


def swept(
    scheduler: str,
    how: How,
    describe: Describe,
    kept: Kept | None = None,
    variants: Sequence[str] = VARIANTS,
) -> Kept:
    kept = kept or Kept()
    with open_pool(how, scheduler, describe=describe) as pool:
        run_distributed(pool, [[a_job(variants)] for _ in pool.hows], kept, kept)
    return kept


def by_name(rows: list[Measurement]) -> Rows:
    found = {row.variant: row for row in rows if row.kind is not Kind.COPY}
    assert len(found) == sum(row.kind is not Kind.COPY for row in rows)
    return found


def test_rows_of_the_cpu_are_those_of_one_process(scheduler: str) -> None:
    try:
        cpu.find_cxx()
    except MissingTool as missing:
        pytest.skip(str(missing))
    how = How(on="cpu", protocol=PROTOCOL, provenance=this_run("cpu", "a commit"))
    here = Kept()
    run_jobs([a_job(VARIANTS[:3])], how, here, here)
    there = swept(scheduler, how, this_run, variants=VARIANTS[:3])
    assert sorted(by_name(there.rows)) == sorted(VARIANTS[:3])
    for name, row in by_name(here.rows).items():
        other = by_name(there.rows)[name]
        assert row.outcome is Outcome.OK and row.model_us
        where = replace(other.provenance, run="", measured_at="")
        assert where == replace(row.provenance, run="", measured_at="")
        assert replace(other, provenance=row.provenance) == row


def test_the_fastest_of_all_chunks_meet_in_a_final(scheduler: str, tmp_path: Path) -> None:
    kept = swept(scheduler, on_fakes(FakeGpu(tmp_path)), one_model)
    rows = by_name(kept.rows)
    assert sorted(rows) == sorted(VARIANTS)
    assert {row.outcome for row in rows.values()} == {Outcome.OK}
    best = rows["v5:threads=32"]
    assert best.is_tied and best.is_complete and len(best.samples_us) >= 4 and best.copy_us
    assert best.median_us == pytest.approx(32, rel=0.01)
    assert sum(row.kind is Kind.COPY for row in kept.rows) == 3
    others = [row for row in rows.values() if row is not best]
    assert all(row.median_us and not row.is_tied for row in others)
    assert all(len(row.samples_us) < 4 for row in others)
    assert {row.provenance.run for row in kept.rows} == {best.provenance.run}
    assert {row.provenance.device_uuid for row in kept.rows} == {"GPU-0", "GPU-1"}
    assert {row.provenance.commit for row in kept.rows} == {"a commit"}


def test_a_lost_task_is_done_again(scheduler: str, tmp_path: Path) -> None:
    kept = swept(scheduler, on_fakes(FakeGpu(tmp_path, "task", VARIANTS[1])), one_model)
    rows = by_name(kept.rows)
    assert sorted(rows) == sorted(VARIANTS)
    assert {row.outcome for row in rows.values()} == {Outcome.OK}
    assert rows["v5:threads=32"].is_tied
    assert is_gone(int((tmp_path / "accident").read_text()))


def test_models_of_gpus_are_kept_apart_and_wait_for_a_lost_worker(
    scheduler: str, tmp_path: Path
) -> None:
    kept = swept(scheduler, on_fakes(FakeGpu(tmp_path, "worker", VARIANTS[1])), two_models)
    assert len(kept.rows) == 2 * (len(VARIANTS) + 3)
    for number in "01":
        rows = [row for row in kept.rows if row.provenance.device == f"fake {number}"]
        assert sorted(by_name(rows)) == sorted(VARIANTS)
        assert {row.provenance.device_uuid for row in rows} == {f"GPU-{number}"}
        assert {row.outcome for row in rows} == {Outcome.OK}
        assert by_name(rows)["v5:threads=32"].is_tied
    assert len({row.provenance.run for row in kept.rows}) == 1
    assert is_gone(int((tmp_path / "accident").read_text()))


def test_what_is_lost_every_time_is_given_up(scheduler: str, tmp_path: Path) -> None:
    kept = swept(scheduler, on_fakes(FakeGpu(tmp_path, "task", VARIANTS[4], True)), one_model)
    assert len((tmp_path / "accident").read_text().split()) == 3
    rows = by_name(kept.rows)
    assert sorted(rows) == sorted(VARIANTS)
    failed = rows[VARIANTS[4]]
    assert failed.outcome is Outcome.MACHINE_TROUBLE and not failed.is_complete
    assert "3 tries" in failed.reason and "SIGKILL" in failed.reason
    assert rows["v5:threads=32"].outcome is Outcome.OK


class Impatient(Kept):
    """Presses Ctrl-C at the first row."""

    def finished(self, row: Measurement) -> None:
        raise KeyboardInterrupt


def test_an_interrupt_ends_what_runs_and_keeps_what_came(scheduler: str, tmp_path: Path) -> None:
    kept = Impatient()
    with pytest.raises(KeyboardInterrupt):
        swept(scheduler, on_fakes(FakeGpu(tmp_path, "hang", VARIANTS[4])), one_model, kept)
    assert 1 <= len(by_name(kept.rows)) < len(VARIANTS)
    assert is_gone(int((tmp_path / "accident").read_text()))


def test_another_kgen_is_refused(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "own_facts", lambda: WorkerFacts("0.0.1", "abc"))
    how = How(on="cpu", protocol=PROTOCOL, provenance=NOWHERE)
    with (
        pytest.raises(UsageError, match=r"worker \d has kgen .* kgen 0\.0\.1 with templates abc"),
        open_pool(how, scheduler, describe=one_model),
    ):
        pass


def test_workers_without_a_gpu_only_compile() -> None:
    import distributed

    how = How(on="gpu", protocol=PROTOCOL, provenance=NOWHERE)
    with (
        distributed.LocalCluster(  # type: ignore[no-untyped-call]
            1, processes=False, dashboard_address=":0"
        ) as cluster,
        pytest.raises(
            UsageError, match=r"no worker of .* has the resource GPU; start one for each"
        ),
        open_pool(how, cluster.scheduler_address),
    ):
        pass


def test_a_scheduler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "CONNECT_S", 0.5)
    how = How(on="cpu", protocol=PROTOCOL, provenance=NOWHERE)
    for address in ("tcp://127.0.0.1:9", "nonsense://", "nonsense", "http://127.0.0.1:9", "a:b"):
        with pytest.raises(UsageError, match="no scheduler"), open_pool(how, address):
            pass


@pytest.mark.parametrize("address", ["nonsense", "http://127.0.0.1:9", "tcp://host:port"])
def test_no_client_is_made_of_what_is_no_address(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would end with a traceback, after some 20 seconds."""
    monkeypatch.setattr("distributed.Client", lambda *_, **__: pytest.fail("a client is made"))
    with pytest.raises(UsageError, match="no scheduler answers"), connected(address):
        pass


def test_local_workers_are_no_part_of_the_terminal_and_end_with_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Ctrl-C there would end them before the sweep could stop what they do."""
    for name in ("random", "socket", "pickle", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path)  # of which workers import nothing
    with local_cluster(1, "cpu") as address, connected(address) as client:
        (session,) = client.run(lambda: os.getsid(0)).values()
        (process,) = client.run(os.getpid).values()
    assert session != os.getsid(0)
    assert is_gone(process)


def test_why_local_workers_do_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "__name__", "kgen.absent")
    with (
        pytest.raises(MissingTool, match=r"no workers can be .*kgen\.absent"),
        local_cluster(1, "cpu"),
    ):
        pass


def test_too_few_gpus_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    how = How(on="gpu", protocol=PROTOCOL, provenance=NOWHERE)
    with pytest.raises(UsageError, match="CUDA_VISIBLE_DEVICES=3 shows 1"), open_pool(how, None, 2):
        pass


def test_the_extra_is_named_where_dask_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    how = How(on="cpu", protocol=PROTOCOL, provenance=NOWHERE)
    with pytest.raises(MissingTool, match=r"\.\[cluster\]"), open_pool(how, None, 2):
        pass


def test_chunks_are_even_and_within_bounds() -> None:
    assert chunks([], 2, 4, 1) == []
    assert chunks([1], 2, 4, 1) == [[1]]
    assert chunks([1, 2, 3, 4, 5], 2, 4, 1) == [[1, 2, 3], [4, 5]]
    assert chunks([1, 2, 3, 4, 5], 2, 8, 2) == [[1, 2, 3], [4, 5]]
    assert [len(part) for part in chunks(range(1000), 2, 128, 1)] == [125] * 8
