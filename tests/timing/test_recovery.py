"""Rows of killed runs: what they had sampled is not lost, and what failed stays failed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from kgen.specs.types import find_types
from kgen.store.database import Store, open_store
from kgen.store.journal import Journal
from kgen.store.measurement import Measurement, Outcome
from kgen.timing.bench import measure
from kgen.timing.protocol import REPORT, ROTATED, Protocol
from kgen.timing.recovery import finish_killed_runs
from kgen.timing.summary import blank
from tests.timing.fakes import PROVENANCE, FakeDevice, peer, variant


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "results.sqlite") as store:
        yield store


def begin(
    journal: Journal, protocol: Protocol, *names: str, run: str = "a run"
) -> dict[str, Measurement]:
    provenance = replace(PROVENANCE, run=run)
    rows = {name: blank(variant(name), protocol, provenance) for name in names}
    for row in rows.values():
        journal.begin(row)
    return rows


def recovered(store: Store) -> dict[str, Measurement]:
    finish_killed_runs(Journal(store))
    assert Journal(store).unfinished() == []
    return {row.variant: row for row in store.select()}


def test_samples_of_a_killed_run_become_rows(store: Store) -> None:
    journal = Journal(store)
    rows = begin(journal, ROTATED, "a", "b")
    for us in (2.0, 2.5, 2.25):
        journal.add_round(rows, {"a": us, "b": us / 2})
    del journal  # and its lock, as at the end of its process
    found = recovered(store)
    assert found["a"].samples_us == (2.0, 2.5, 2.25) and found["a"].median_us == 2.25
    assert found["b"].speedup == 2 and found["b"].baseline == "a" and found["b"].is_tied
    for row in found.values():
        assert row.outcome is Outcome.OK and not row.is_complete
        assert row.remark.endswith("the run was killed after 3 rounds")
        assert row.provenance == PROVENANCE


def test_before_the_first_round_there_is_nothing_to_save(store: Store) -> None:
    begin(Journal(store), ROTATED, "a")
    row = recovered(store)["a"]
    assert row.outcome is Outcome.FAILED and not row.is_complete
    assert "killed before the first round" in row.reason


def test_one_after_the_other_those_that_had_their_turn_are_saved(store: Store) -> None:
    journal = Journal(store)
    rows = begin(journal, REPORT, "a", "b", "c")
    for name in ["a"] * 10 + ["b"] * 4:
        journal.add_round(rows, {name: 2.0})
    del journal
    found = recovered(store)
    assert [len(found[name].samples_us) for name in "abc"] == [10, 4, 0]
    assert [found[name].outcome for name in "abc"] == ["ok", "ok", "failed"]
    assert found["b"].remark == "the run was killed after 4 rounds"


def test_runs_are_told_apart_and_those_at_work_left_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the id of a process nor the name of a host says which runs are over."""
    journal = Journal(store)
    for run in ("first", "second"):
        rows = begin(journal, ROTATED, run, run=run)
        journal.add_round(rows, {run: 2.0})
    del journal
    at_work = Journal(store)
    begin(at_work, ROTATED, "at work", run="third")
    monkeypatch.setattr("socket.gethostname", lambda: "renamed")
    found = recovered(store)
    assert {row.provenance.run: row.baseline for row in found.values()} == {
        "first": "first",
        "second": "second",
    }
    del at_work
    assert "at work" in recovered(store)


def test_types_of_a_run_are_told_apart(store: Store) -> None:
    journal = Journal(store)
    for name, word in (("a", "float32"), ("b", "bfloat16")):
        candidate = replace(variant(name), types=find_types(word))
        row = blank(candidate, ROTATED, PROVENANCE)
        journal.begin(row)
        journal.add_round({name: row}, {name: 2.0})
    del journal
    found = recovered(store)
    assert {name: row.baseline for name, row in found.items()} == {"a": "a", "b": "b"}


def test_the_same_run_is_told_by_any_name_of_its_file(store: Store, tmp_path: Path) -> None:
    (tmp_path / "link.sqlite").symlink_to(store.path)
    at_work = Journal(store)
    begin(at_work, ROTATED, "a")
    with open_store(tmp_path / "link.sqlite") as other:
        assert Journal(other).unfinished() == []
        del at_work
        assert len(Journal(other).unfinished()) == 1


def test_a_row_that_the_machine_hindered_is_forgotten(store: Store) -> None:
    journal = Journal(store)
    (row,) = begin(journal, ROTATED, "a").values()
    journal.finish(replace(row, outcome=Outcome.MACHINE_TROUBLE))
    del journal
    assert Journal(store).unfinished() == [] and store.select() == []


@pytest.mark.parametrize(
    "change",
    [
        "junk",
        "[3]",
        lambda values: values | {"a_column_of_tomorrow": 1},
        lambda values: values | {"outcome": "splendid"},
        lambda values: {name: value for name, value in values.items() if name != "rows"},
        lambda values: values | {"protocol": ""},
        lambda values: values | {"protocol": '{"l2": "tepid", "options": {}}'},
    ],
)
def test_what_another_kgen_left_is_left_to_it(store: Store, change: object) -> None:
    begin(Journal(store), ROTATED, "a", "b")
    with store.transaction() as connection:
        (text,) = connection.execute("SELECT measurement FROM pending").fetchone()
        text = json.dumps(change(json.loads(text))) if callable(change) else change
        connection.execute("UPDATE pending SET measurement = ?", (text,))
    finish_killed_runs(Journal(store))
    with store.transaction() as connection:
        assert connection.execute("SELECT count(*) FROM pending").fetchone() == (2,)
    assert store.select() == []


class Dying(Journal):
    """Kills its own process when the third round is written."""

    rounds = 0

    def add_round(self, rows: Mapping[str, Measurement], taken: Mapping[str, float]) -> None:
        super().add_round(rows, taken)
        self.rounds += 1
        if self.rounds == 3:
            os.kill(os.getpid(), signal.SIGKILL)


def measure_and_die(path: str) -> None:
    """Measure until the end of this process; one candidate fails before that."""
    candidates = [peer("too_big@2"), peer("slow"), peer("fast"), peer("wrong")]
    with open_store(Path(path)) as store:
        measure(candidates, ROTATED, PROVENANCE, open_device=FakeDevice, record=Dying(store))


def test_a_run_that_is_killed_leaves_its_rounds(tmp_path: Path) -> None:
    path = tmp_path / "killed.sqlite"
    script = f"from {__name__} import measure_and_die; measure_and_die({str(path)!r})"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", script], env=environment, timeout=60)
    assert ran.returncode == -signal.SIGKILL
    with open_store(path) as store:
        found = recovered(store)
    assert [len(found[name].samples_us) for name in ("slow", "fast")] == [3, 3]
    assert found["fast"].speedup == pytest.approx(3, rel=0.01)
    assert found["too_big@2"].outcome is Outcome.REFUSED and found["too_big@2"].is_complete
    assert found["wrong"].outcome is Outcome.WRONG and len(found) == 4
