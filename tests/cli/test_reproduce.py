"""`kgen reproduce`: without a GPU for real, with one that is made up, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kgen.cli import reproduce
from kgen.gpu import device
from kgen.store.measurement import Outcome
from kgen.studies import counts, registers
from kgen.studies import reproduce as reproduction
from kgen.studies.claims import all_statements
from kgen.studies.result import read_result
from tests.cli.conftest import Ended
from tests.studies.fake import Machine

Call = Callable[..., Ended]


@pytest.fixture
def small_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report of a statement about counts, one about times, and the counts of short rows."""
    some = tuple(statement for statement in all_statements() if statement.number in (6, 8))
    monkeypatch.setattr(reproduction, "statements", lambda studies: some)
    short = tuple(row for row in counts.REPORTED if row.cols == 257)
    monkeypatch.setattr(counts, "REPORTED", short)
    monkeypatch.setattr(registers, "REPORTED", ())


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A GPU that is made up, and no database."""
    made_up = Machine()
    info = device.DeviceInfo("made up", "sm_75", 40, 4 << 20, 16 << 30, "1")
    monkeypatch.setattr("kgen.gpu.device_info", lambda: info)
    monkeypatch.setattr(reproduce, "_timing", lambda store, seconds: made_up)
    return made_up


def test_on_the_cpu_counts_are_judged_and_times_are_not(
    call: Call, cxx: None, small_report: None, tmp_path: Path
) -> None:
    ended = call("reproduce", "--on", "cpu", "--study", "report", "--l2", "cold", "--out", "r.json")
    assert ended.code == 0
    words = " ".join(ended.out.split())
    assert "v8 / v5 at 1025 x 257 0.1111 holds" in words
    assert "not measured: times need a GPU" in words
    assert "v5 1025 x 257 18,450 9,225 18,450 9,225 equal" in words
    result = read_result(tmp_path / "r.json")
    assert result.l2_states == ("cold",) and result.provenance is None
    assert [statement.number for statement in result.statements] == [6, 8]


def test_json_is_all_that_is_printed(call: Call, cxx: None) -> None:
    found = call("reproduce", "--on", "cpu", "--study", "k", "--json").json
    assert found["statements"][0]["verdicts"] == {"warm": "not measured", "cold": "not measured"}
    assert found["tables"][0]["cells"][0]["figure"] == [232.26]


def test_a_gpu_gives_tables_and_verdicts(call: Call, machine: Machine) -> None:
    ended = call("reproduce", "--study", "k", "--l2", "warm", "--db", "rows.sqlite")
    assert ended.code == 0
    assert machine.calls == [(["cpu", "k1", "k2", "k3", "k4"], 256, 65536, "warm")]
    words = " ".join(ended.out.split())
    assert "k1 65.68 0.283" in words and "k1 / k4 at 256 x 65536 49." in words
    assert "HOLDS" in words and "1/1: 5 variants at 256 x 65536, L2 warm" in ended.err


def test_a_wrong_kernel_fails_after_the_tables(call: Call, machine: Machine) -> None:
    machine.broken = {"k3": Outcome.WRONG}
    ended = call(
        "reproduce", "--study", "k", "--l2", "warm", "--db", "rows.sqlite", "--out", "r.json"
    )
    assert ended.code == 1
    assert ended.err.count("k3 at 256 x 65536: for a test") == 1
    assert "k3 at 256 x 65536 was wrong: for a test" in " ".join(ended.out.split())
    assert Path("r.json").exists()


def test_counts_that_differ_from_the_reports_fail(
    call: Call, cxx: None, small_report: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "REPORTED", (counts.Accesses("v8", 1025, 257, 18_450, 1),))
    ended = call("reproduce", "--on", "cpu", "--study", "report")
    assert ended.code == 1
    assert "v8 at 1025 x 257 has 18450 loads and 9225 stores, not 18450 and 1" in ended.err
    assert "NOT EQUAL" in ended.out


def test_profiles_give_verdicts_on_causes(
    call: Call, machine: Machine, small_report: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kgen.profile import Profile, ProfileTarget

    values = {"v5": 2_442_575.0, "v8": 634_580.0}

    def profile_on_gpu(jobs: list[ProfileTarget]) -> tuple[list[Profile], str]:
        found = [{"warp_instructions": values.get(job.variant)} for job in jobs]
        return [Profile(job.variant, of, ()) for job, of in zip(jobs, found, strict=True)], ""

    monkeypatch.setattr("kgen.profile.profile_on_gpu", profile_on_gpu)
    monkeypatch.setattr(counts, "REPORTED", ())
    found = call(
        "reproduce", "--profile", "--study", "report", "--l2", "cold", "--db", "x", "--json"
    )
    (statement,) = [one for one in found.json["statements"] if one["number"] == 8]
    instructions, occupancy = statement["parts"][:2]
    assert instructions["judgements"]["cold"]["verdict"] == "holds"
    assert instructions["judgements"]["cold"]["figure"]["median"] == pytest.approx(0.26, abs=0.001)
    assert occupancy["judgements"]["cold"]["verdict"] == "not measured"


def test_what_is_measured_is_recorded_in_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kgen.store.database import open_store
    from kgen.timing import bench, provenance
    from tests.studies.fake import PROVENANCE

    seen = []

    def measure_shape(targets, rows, cols, protocol, where, record):  # type: ignore[no-untyped-def]
        seen.append((protocol.name, str(protocol.l2), protocol.budget_s, where))
        found = Machine()(targets, rows, cols, str(protocol.l2))
        for row in found:
            record.finish(row)
        return found

    monkeypatch.setattr(bench, "measure_shape", measure_shape)
    monkeypatch.setattr(provenance, "this_run", lambda: PROVENANCE)
    with open_store(tmp_path / "rows.sqlite") as store:
        found = reproduce._timing(store, 3.0)(["v9:grid=128", "v9"], 1024, 257, "cold")
        assert [row.variant for row in found] == ["v9:grid=128", "v9"]
        assert [row.variant for row in store.select(l2="cold")] == ["v9:grid=128", "v9"]
    assert seen == [("rotated", "cold", 3.0, PROVENANCE)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--study", "k2"), "--study k2: the studies are k, 1d, report, ours or all"),
        (("--l2", "hot"), "--l2 hot: the L2 cache is cold or warm"),
        (("--on", "tpu"), "'tpu': kernels run on cpu or gpu"),
        (("--on", "cpu", "--profile"), "--profile with --on cpu: only kernels on a GPU"),
    ],
)
def test_unknown_choices(call: Call, arguments: tuple[str, ...], words: str) -> None:
    refused = call("reproduce", *arguments)
    assert refused.code == 2 and words in refused.err


def test_without_a_gpu_it_says_what_is_missing(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    from kgen.errors import MissingTool

    def missing() -> None:
        raise MissingTool("no GPU found")

    monkeypatch.setattr("kgen.gpu.device_info", missing)
    ended = call("reproduce", "--study", "k")
    assert (ended.code, ended.err) == (3, "kgen: no GPU found\n")


def test_without_a_compiler_nothing_is_counted(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    ended = call("reproduce", "--on", "cpu")
    assert ended.code == 3 and ended.err.startswith("kgen: CXX names") and not ended.out
