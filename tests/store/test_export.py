"""Measurements as JSON and CSV, and JSON read back."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from kgen.errors import UsageError
from kgen.store.columns import COLUMNS
from kgen.store.export import csv_text, json_text, objects, read_json, write_json
from kgen.store.measurement import Measurement
from tests.store.rows import FULL, PLAIN, row
from tests.store.strategies import any_measurement

PLAIN_KEYS = {
    "variant": "v7",
    "rows": 1024,
    "cols": 4096,
    "kind": "variant",
    "outcome": "ok",
    "run": "run-1",
    "measured_at": "2026-11-30T08:13:57+00:00",
    "device": "NVIDIA H200",
}


def test_objects_are_flat_but_for_what_is_structured() -> None:
    (full,) = objects([FULL])
    assert list(full) == list(COLUMNS)
    assert (full["outcome"], full["flags"], full["is_tied"]) == ("ok", FULL.flags, True)
    assert (full["device"], full["commit"]) == ("NVIDIA H200", "6f44f9b23c0e")
    assert full["samples_us"] == [9.5, 10.0, 10.1]
    assert full["spec"] == {"version": "v7", "vec_size": 1, "trip": None}
    assert full["protocol"] == {"rounds": 3, "l2": "warm"}
    (plain,) = objects([PLAIN])
    assert (plain["spec"], plain["samples_us"], plain["median_us"]) == (None, [], None)


def test_json_comes_back(tmp_path: Path) -> None:
    write_json(tmp_path / "out" / "results.json", [PLAIN, FULL])
    assert read_json(tmp_path / "out" / "results.json") == [PLAIN, FULL]
    assert json_text([PLAIN, FULL]).count("\n") == 4  # a line a measurement
    write_json(tmp_path / "none.json", [])
    assert read_json(tmp_path / "none.json") == []


@settings(max_examples=30, deadline=None)
@given(any_measurement())
def test_any_values_come_back(measurement: Measurement) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_json(Path(folder) / "x.json", [measurement])
        assert read_json(Path(folder) / "x.json") == [measurement]


@pytest.mark.parametrize("text", ["null", "NaN", "[1]", '"x"', "{", "[" * 10_000])
def test_a_spec_that_is_no_object_stays_text(tmp_path: Path, text: str) -> None:
    write_json(tmp_path / "x.json", [row(spec=text)])
    assert read_json(tmp_path / "x.json") == [row(spec=text)]


def test_numbers_that_json_lacks_are_null() -> None:
    odd = row(median_us=float("nan"), max_us=float("inf"), spec='{"a": NaN}')
    loaded = json.loads(json_text([odd]), parse_constant=pytest.fail)[0]
    assert (loaded["median_us"], loaded["max_us"], loaded["spec"]) == (None, None, {"a": None})


def test_what_has_a_default_may_be_absent(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps([PLAIN_KEYS]))
    assert read_json(tmp_path / "x.json") == [PLAIN]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("junk", "x.json has no measurements: it is not JSON"),
        ("[" * 100_000, "x.json has no measurements: it is not JSON"),
        ("caf\udce9", "x.json has no measurements: it is not JSON"),
        ('{"format": 1, "rows": []}', "x.json has no measurements: it is not a list of them"),
        ("[1]", "measurement 1 of x.json cannot be read: it is not an object"),
        ("[{}]", "measurement 1 of x.json cannot be read: "),
        ([PLAIN_KEYS, PLAIN_KEYS | {"mood": 1}], "measurement 2 of x.json cannot be read: this kgen knows no mood"),
        ([PLAIN_KEYS | {"rows": "8"}], 'Expected `int`, got `str` - at `$.rows`'),
        ([PLAIN_KEYS | {"rows": None}], 'Expected `int`, got `null` - at `$.rows`'),
        ([PLAIN_KEYS | {"rows": True}], 'Expected `int`, got `bool` - at `$.rows`'),
        ([PLAIN_KEYS | {"is_tied": 1}], 'Expected `bool | null`, got `int` - at `$.is_tied`'),
        ([PLAIN_KEYS | {"median_us": "1"}], 'Expected `float | null`, got `str` - at `$.median_us`'),
        ([PLAIN_KEYS | {"median_us": 10**400}], 'Number out of range - at `$.median_us`'),
        ([PLAIN_KEYS | {"samples_us": [1, None]}], 'Expected `float`, got `null` - at `$.samples_us[1]`'),
        ([PLAIN_KEYS | {"spec": 1}], 'Expected `str`, got `int` - at `$.spec`'),
        ([PLAIN_KEYS | {"outcome": "fine"}], "Invalid enum value 'fine' - at `$.outcome`"),
        ([PLAIN_KEYS | {"outcome": []}], 'Expected `str`, got `array` - at `$.outcome`'),
    ],
)  # fmt: skip
def test_other_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: object, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    text = content if isinstance(content, str) else json.dumps(content)
    Path("x.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError) as refusal:
        read_json(Path("x.json"))
    assert sentence in str(refusal.value)


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read measurements from .*: No such file"):
        read_json(tmp_path / "absent.json")
    with pytest.raises(UsageError, match=r"cannot read measurements from .*: Is a directory"):
        read_json(tmp_path)
    with pytest.raises(UsageError, match=r"/proc/x\.json cannot be written"):
        write_json(Path("/proc/x.json"), [])


def test_csv_has_a_column_a_key() -> None:
    plain, full = csv.DictReader(io.StringIO(csv_text([PLAIN, FULL])))
    assert list(full) == list(COLUMNS)
    assert (full["flags"], full["median_us"], full["is_tied"]) == (FULL.flags, "10.0", "True")
    assert json.loads(full["samples_us"]) == [9.5, 10.0, 10.1]
    assert json.loads(full["protocol"]) == {"rounds": 3, "l2": "warm"}
    assert (plain["median_us"], plain["spec"], plain["outcome"]) == ("", "", "ok")
    assert csv_text([]).splitlines() == [",".join(COLUMNS)]
