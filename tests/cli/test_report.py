"""kgen report says what the rows of a database mean, and measures nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kgen.cli.report import newest
from kgen.store.database import open_store
from kgen.store.measurement import Kind
from tests.sweep.made import made


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Two versions on one shape: v7 was measured again, and v8 with a warm L2 as well."""
    path = tmp_path / "db.sqlite"
    cold = {"l2": "cold", "protocol_name": "rotated"}
    with open_store(path) as store:
        store.add(made("v7", us=9.0, run="old", **cold))
        store.add(made("v8", us=6.0, **cold))
        store.add(made("v7", us=5.0, **cold))
        store.add(made("v8", us=1.0, **cold | {"l2": "warm"}))
    return path


def test_the_newest_row_of_each_counts_and_states_of_the_l2_are_apart(call, db: Path) -> None:
    ended = call("report", "--db", str(db), "--json")
    assert ended.code == 0
    cold, warm = json.loads(ended.out)
    assert cold["place"][2:] == ["rotated", "cold", "float32"] and warm["place"][3] == "warm"
    assert cold["shapes"][0]["ranked"] == ["v7", "v8"]
    assert cold["shapes"][0]["best"]["cost_us"] == 5.0
    assert warm["shapes"][0]["ranked"] == ["v8"]


def test_filters_and_words(call, db: Path) -> None:
    ended = call("report", "--db", str(db), "--l2", "cold", "--variant", "v8")
    assert ended.code == 0 and "L2 cold" in ended.out and "6.00" in ended.out
    assert "5.00" not in ended.out and "warm" not in ended.out
    ended = call("report", "--db", str(db), "--rows", "77")
    assert ended.code == 0 and "has no such measurements" in ended.out
    assert call("report", "--db", str(db.with_name("none"))).code == 2


def test_types_are_apart() -> None:
    copy = made("copy_one", us=1.0, kind=Kind.COPY)
    found = newest([made("v7", us=1.0), copy, replace(copy, dtype="float16")])
    assert [place[-1] for place in found] == ["float32", "float16 to float32"]
    assert [len(of) for of in found.values()] == [2, 1]


def test_devices_are_apart() -> None:
    row = made("v7", us=1.0)
    other = replace(row, provenance=replace(row.provenance, device="another"))
    assert [len(rows) for rows in newest([row, other]).values()] == [1, 1]
