"""bench: verified and counted on the CPU; on a stand-in for the GPU also timed and compared."""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kgen
from kgen.overlay import OURS, Overlay
from kgen.store.database import open_store
from kgen.store.journal import Journal
from kgen.store.measurement import Measurement, Provenance
from kgen.timing.bench import measure
from kgen.timing.protocol import ROTATED
from kgen.timing.summary import blank
from tests.cli.conftest import Ended
from tests.timing.fakes import PROVENANCE, FakeDevice, compile_fakes

pytestmark = pytest.mark.slow

Call = Callable[..., Ended]
SMALL = ("--rows", 30, "--cols", 50)


@pytest.fixture(autouse=True)
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database of the test's own, which is not there yet."""
    path = tmp_path / "db" / "results.sqlite"
    monkeypatch.setenv("KGEN_DB", str(path))
    return path


def stored(db: Path) -> dict[str, Measurement]:
    """Return what is in the database by name, each once, and nothing in flight."""
    with open_store(db) as store:
        rows = store.select()
        assert Journal(store).unfinished() == []
    assert len({row.variant for row in rows}) == len(rows)
    return {row.variant: row for row in rows}


@pytest.fixture
def fake_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a stand-in for the GPU and for nvcc."""

    def this_run(on: str, overlay: Overlay) -> Provenance:
        assert on == "gpu" and overlay == OURS
        return PROVENANCE

    on_fake = functools.partial(measure, open_device=FakeDevice)
    monkeypatch.setattr("kgen.timing.provenance.this_run", this_run)
    monkeypatch.setattr("kgen.timing.candidates.compile_many", compile_fakes)
    monkeypatch.setattr("kgen.timing.bench.measure", on_fake)


@pytest.mark.usefixtures("cxx")
class TestOnTheCpu:
    def test_rows_are_printed_and_stored(self, call: Call, db: Path) -> None:
        ran = call("bench", "v5", "cpu", "v7:items=1", *SMALL, "--on", "cpu")
        assert ran.code == 0 and ran.err == ""
        title, head, *lines = ran.rows()
        assert " ".join(title) == "30 x 50 on cpu; verified and counted, not timed"
        assert head[:6] == ["variant", "verdict", "max", "error", "loads", "stores"]
        assert [line[:2] for line in lines] == [["v5", "ok"], ["cpu", "ok"], ["v7:items=1", "ok"]]
        rows = stored(db)
        assert list(rows) == ["v5", "cpu", "v7:items=1"]
        assert len({row.provenance.run for row in rows.values()}) == 1
        assert f"{rows['v5'].exponentials:,}" in lines[0]

    def test_all_versions_by_default(self, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("kgen.timing.on_cpu.measure_on_cpu", lambda ours, *args, **kwargs: ours)
        monkeypatch.setattr("kgen.cli.bench.print_rows", lambda title, rows: None)
        monkeypatch.setattr("kgen.cli.bench._judge", names := Names())
        assert call("bench", *SMALL, "--on", "cpu").code == 0
        assert names.seen == [*kgen.versions(), "copy_driver", "copy_one", "copy_four"]

    def test_json_and_a_file(self, call: Call, db: Path, tmp_path: Path) -> None:
        options = ("--on", "cpu", "--json", "--out", "made/rows.json", "--seed", 7)
        ran = call("bench", "v5", *SMALL, *options, "--dist", "zeros")
        (row,) = ran.json
        assert (row["variant"], row["rows"], row["cols"], row["outcome"]) == ("v5", 30, 50, "ok")
        assert (row["device"], row["kind"]) == ("cpu", "variant")
        assert (row["input_name"], row["seed"]) == ("zeros", 7)
        assert row["global_loads"] > 0 and row["median_us"] is None and row["samples_us"] == []
        assert row["spec"]["version"] == "v5"
        assert json.loads((tmp_path / "made" / "rows.json").read_text()) == ran.json
        assert len(stored(db)) == 1

    def test_several_wrong_files(self, call: Call, db: Path, edited: Callable[..., Path]) -> None:
        doubled = edited("v5", "* inverse_sum", "* (2.0f * inverse_sum)")
        rejected = edited("v6", "expf(", "exqf(")
        ran = call("bench", doubled, "v5", rejected, *SMALL, "--on", "cpu")
        assert ran.code == 1
        assert ran.err.startswith(f"kgen: 2 of 3 could not be measured: {doubled}: element (row ")
        assert f"; {rejected}: " in ran.err and "exqf" in ran.err
        assert [row.outcome for row in stored(db).values()] == ["wrong", "ok", "failed"]

    def test_a_shape_that_does_not_suit_is_no_error(self, call: Call, db: Path) -> None:
        ran = call("bench", "v7:items=1", "--rows", 1, "--cols", 5000, "--on", "cpu")
        assert ran.code == 0 and "refused" in ran.out
        assert stored(db)["v7:items=1"].outcome == "refused"
        empty = call("bench", "v5", "--rows", 0, "--on", "cpu", "--db", "empty.sqlite")
        assert empty.code == 0 and "has nothing to time" in empty.out

    def test_named_twice_is_measured_once(self, call: Call, db: Path) -> None:
        assert call("bench", "v5", "v5", *SMALL, "--on", "cpu").code == 0
        assert list(stored(db)) == ["v5"]

    def test_a_database_that_cannot_be_written(self, call: Call, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        refused = call("bench", "v5", *SMALL, "--on", "cpu", "--db", "file/results.sqlite")
        assert refused.code == 2 and refused.err.count("\n") == 1


class Names:
    """Takes what is measured, and knows the names."""

    def __call__(self, measured: Any, limit: float | None) -> None:
        self.seen = [one.name for one in measured]


@pytest.mark.usefixtures("fake_gpu")
class TestOnAGpu:
    def test_times_are_printed_and_stored(self, call: Call, db: Path) -> None:
        ran = call("bench", "v5", "v6", *SMALL)
        assert ran.code == 0 and ran.err == ""
        title, head, table = ran.out.partition(" variant ")
        assert " ".join(title.split()) == f"30 x 50 on a fake; {ROTATED}"
        columns, *lines = [line.split() for line in (head + table).splitlines()]
        assert " ".join(columns) == "variant us +- % GB/s % copy speed-up tied regs max error"
        cells = {words[0]: words[1:] for words in lines}
        assert list(cells) == ["v5", "v6", "copy_driver", "copy_one", "copy_four"]
        assert cells["v5"][:6] == ["2.00", "0.1", "6", "100", "1.000", "fastest"]
        assert cells["v6"][:5] == ["2.20", "0.1", "5", "91", "0.910"]
        rows = stored(db)
        assert list(rows) == list(cells) and rows["v6"].provenance == PROVENANCE
        assert rows["v6"].baseline == "v5" and len(rows["v6"].samples_us) == 10

    def test_who_failed_is_in_the_table_with_the_reason(self, call: Call, db: Path) -> None:
        ran = call("bench", "v5", "v7:items=1", "--rows", 2, "--cols", 5000)
        assert ran.code == 0
        (line,) = [words for words in ran.rows() if words[0] == "v7:items=1"]
        assert line[1] == "refused:" and "5000" in " ".join(line)
        assert stored(db)["v7:items=1"].samples_us == ()

    def test_settings_reach_the_rows(self, call: Call, db: Path) -> None:
        options = ("--l2", "warm", "--seconds", 3.5, "--seed", 7, "--dist", "huge")
        ran = call("bench", "v5", *SMALL, *options, "--json")
        assert ran.code == 0
        assert all(row["l2"] == "warm" and row["seed"] == 7 for row in ran.json)
        assert all(row["input_name"] == "huge" for row in ran.json)
        assert ran.json[0]["protocol"]["budget_s"] == 3.5

    def test_a_type_is_that_of_all_that_name_none(self, call: Call, db: Path) -> None:
        typed = ("--dtype", "bfloat16", "--out-dtype", "float32")
        ran = call("bench", "v5", "v6:dtype=bfloat16", *SMALL, *typed, "--baseline", "v5")
        assert ran.code == 0 and ran.out.startswith("30 x 50 of bfloat16 to float32 on a fake; ")
        rows = stored(db)
        assert {(row.dtype, row.out_dtype) for row in rows.values()} == {("bfloat16", "float32")}
        ours = ["v5:dtype=bfloat16,out_dtype=float32", "v6:dtype=bfloat16,out_dtype=float32"]
        assert list(rows) == [*ours, "copy_one", "copy_four"]
        assert rows[ours[1]].baseline == ours[0]

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ("v5 v6:dtype=float16", "v5 of float32, v6:dtype=float16 of float16: what differs"),
            ("v5:dtype=bfloat16 v6 --dtype float16", "v5:dtype=bfloat16 of bfloat16, v6:dtype="),
            ("v5 --dtype float8", "dtype=float8 is not a choice; did you mean"),
            (
                "v5 --dtype float64 --out-dtype float32 --on cpu",
                "dtype=float64 with out_dtype=float32",
            ),
        ],
    )
    def test_types_that_do_not_go_together(self, call: Call, arguments: str, words: str) -> None:
        ran = call("bench", *arguments.split(), *SMALL)
        assert ran.code == 2 and ran.err.startswith(f"kgen: {words}")

    def test_a_variant_that_lacks_the_type_is_refused_in_its_row(self, call: Call) -> None:
        named = "v5:exp=__expf"
        ran = call("bench", "v5", named, "--dtype", "float64", *SMALL, "--json")
        assert ran.code == 0
        first, second = ran.json[:2]
        assert (first["outcome"], second["outcome"]) == ("ok", "refused")
        assert "it has no form for double" in second["reason"]

    def test_the_protocol_of_the_report(self, call: Call) -> None:
        ran = call("bench", "v5", *SMALL, "--protocol", "report")
        assert ran.code == 0
        assert "100 launches by PyCUDA, one after the other" in " ".join(ran.out.split())

    def test_peers_take_part(self, call: Call, db: Path, tmp_path: Path) -> None:
        (tmp_path / "plugs").mkdir()
        (tmp_path / "plugs" / "somebody.py").write_text("def bind(x, y, stream): ...\n")
        assert call("bench", "v5", *SMALL, "--peer-dir", "plugs").code == 0
        assert stored(db)["somebody"].kind == "peer"

    @pytest.mark.parametrize(("limit", "code"), [("2%", 1), ("9.5", 1), ("12 %", 0)])
    def test_slower_than_the_baseline(self, call: Call, limit: str, code: int) -> None:
        gate = ("--baseline", "v5", "--fail-if-slower", limit)
        ran = call("bench", "v5", "v6", "v8", *SMALL, *gate)
        assert ran.code == code
        if code:
            percent = float(limit.rstrip("% "))
            words = rf"kgen: slower than v5 by more than {percent}%: v6 by (9\.9|10\.0)%\n"
            assert re.fullmatch(words, ran.err)

    def test_faster_than_the_baseline_is_fine(self, call: Call) -> None:
        gate = ("--baseline", "v6:threads=256,vec=2", "--fail-if-slower", "0%")
        ran = call("bench", "v5", "v6:vec=2,threads=256", *SMALL, *gate, "--json")
        assert ran.code == 0 and {row["baseline"] for row in ran.json} == {ran.json[1]["variant"]}
        assert ran.json[0]["speedup"] == pytest.approx(1.1, rel=0.01)

    @pytest.mark.parametrize("variants", [("v5", "v7:items=1"), ("v7:items=1",)])
    def test_nothing_to_compare_is_no_success(self, call: Call, variants: tuple[str, ...]) -> None:
        gate = ("--baseline", variants[-1], "--fail-if-slower", "2%")
        ran = call("bench", *variants, "--rows", 2, "--cols", 5000, *gate)
        assert ran.code == 1
        assert ran.err == "kgen: --fail-if-slower: no variant was timed beside the baseline\n"

    def test_an_interrupt_keeps_what_was_recorded(
        self, call: Call, db: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(candidates: Any, how: Any, provenance: Any, **options: Any) -> None:
            options["record"].finish(blank(candidates[0], how, provenance))
            raise KeyboardInterrupt

        monkeypatch.setattr("kgen.timing.bench.measure", interrupted)
        ran = call("bench", "v5", "v6", *SMALL)
        assert ran.code == 130 and "Traceback" not in ran.err and ran.out == ""
        assert list(stored(db)) == ["v5"]


def test_without_a_gpu_nothing_is_stored(
    call: Call, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setitem(sys.modules, "pycuda", None)
    from kgen.gpu.device import device_info, load_driver

    for function in (device_info, load_driver):
        function.cache_clear()
    refused = call("bench", "v5")
    assert refused.code == 3 and refused.err.count("\n") == 1
    assert "PyCUDA is not installed" in refused.err and not db.exists()
    for function in (device_info, load_driver):
        function.cache_clear()
