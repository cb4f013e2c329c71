"""The store: what is added is found again, and nothing of it is lost or overwritten."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from kgen.errors import UsageError
from kgen.store.columns import COLUMNS
from kgen.store.connection import FORMAT
from kgen.store.database import default_path, open_store
from kgen.store.measurement import Kind, Measurement, Outcome
from tests.store.rows import FULL, PLAIN, row
from tests.store.strategies import any_measurement

# What an add in a process of its own needs.
PREAMBLE = """
import sys
from pathlib import Path
from kgen.store.database import open_store
from tests.store.rows import row
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a database that is not there yet, in a folder that is not either."""
    return tmp_path / "what? #1" / "results.sqlite"


def test_rows_come_back_as_they_were(path: Path) -> None:
    with open_store(path) as store:
        store.add(PLAIN)
        store.add(FULL)
        assert store.select() == [PLAIN, FULL]
    with open_store(path, read_only=True) as store:
        assert store.select() == [PLAIN, FULL]


@settings(max_examples=30, deadline=None)
@given(any_measurement())
def test_any_values_come_back(measurement: Measurement) -> None:
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "db") as store:
        store.add(measurement)
        assert store.select() == [measurement]


def test_what_is_not_text_is_kept_readable(path: Path) -> None:
    with open_store(path) as store:
        store.add(row(variant="caf\udce9.cu"))
        assert store.select(variant="caf\udce9.cu") == [row(variant="caf\\udce9.cu")]


def test_equal_rows_are_both_kept(path: Path) -> None:
    with open_store(path) as store:
        store.add(PLAIN)
        store.add(PLAIN)
        assert len(store.select()) == 2


def test_the_file_is_in_wal_mode_and_tells_whose_it_is(path: Path) -> None:
    open_store(path).close()
    connection = sqlite3.connect(path)
    pragmas = ("journal_mode", "application_id", "user_version", "integrity_check")
    values = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]
    assert values == ["wal", int.from_bytes(b"kgen", "big"), FORMAT, "ok"]


FILTERS: dict[str, dict[str, Any]] = {
    "variant": {"variant": "v7"},
    "pattern of variants": {"variant": "v7:*"},
    "file": {"variant": "a[1].cu"},
    "rows": {"rows": 8},
    "cols": {"cols": 257},
    "device": {"device": "cpu"},
    "pattern of devices": {"device": "*H?00"},
    "outcome": {"outcome": Outcome.WRONG},
    "run": {"run": "run-2"},
    "latest run": {"run": "latest"},
    "latest run's wrong ones": {"run": "latest", "outcome": Outcome.WRONG},
    "kind": {"kind": Kind.FILE},
    "protocol": {"protocol_name": "steady"},
    "l2": {"l2": "warm"},
    "since": {"since": datetime(2026, 12, 1, 10)},
    "since, elsewhere": {"since": datetime(2026, 12, 1, 12, tzinfo=timezone(timedelta(hours=2)))},
    "since a second later": {"since": datetime(2026, 12, 1, 10, 0, 1, tzinfo=UTC)},
    "type of the input": {"dtype": "bfloat16"},
    "type of the output": {"out_dtype": "float32"},
    "limit": {"limit": 2},
    "none fits": {"variant": "v9"},
    "all": {},
}
CHOSEN = {
    "variant": [0],
    "pattern of variants": [3],
    "file": [2],
    "rows": [1],
    "cols": [1],
    "device": [1],
    "pattern of devices": [0, 2, 3],
    "outcome": [1],
    "run": [3],
    "latest run": [3],
    "latest run's wrong ones": [],
    "kind": [2],
    "protocol": [3],
    "l2": [3],
    "since": [3],
    "since, elsewhere": [3],
    "since a second later": [],
    "type of the input": [3],
    "type of the output": [0, 2, 3],
    "limit": [2, 3],
    "none fits": [],
    "all": [0, 1, 2, 3],
}
ROWS = [
    PLAIN,
    row(variant="v8", rows=8, cols=257, device="cpu", outcome=Outcome.WRONG, out_dtype="float16"),
    row(variant="a[1].cu", kind=Kind.FILE),
    FULL,
]


@pytest.mark.parametrize("name", FILTERS)
def test_filters(path: Path, name: str) -> None:
    with open_store(path) as store:
        for index in (3, 0, 1, 2):  # the newest run first: its start decides, not its row
            store.add(ROWS[index])
        assert store.select(**FILTERS[name]) == [ROWS[index] for index in CHOSEN[name]]


def test_find_gives_the_newest_that_is_equal_in_all_keys(path: Path) -> None:
    keys = {"variant": "v7", "rows": 1024, "device": "NVIDIA H200", "seed": None}
    with open_store(path) as store:
        assert store.find(keys) is None
        store.add(row(run="new", measured_at="2026-12-02T00:00:00+00:00"))
        store.add(row(run="old"))
        store.add(row(run="other", seed=1, measured_at="2027-01-01T00:00:00+00:00"))
        found = store.find(keys)
        assert found is not None and found.provenance.run == "new"
        assert store.find(keys | {"variant": "v*"}) is None
        assert store.find(keys | {"outcome": Outcome.WRONG}) is None
        with pytest.raises(KeyError):
            store.find({"colour": "red"})


def test_looking_a_candidate_up_uses_an_index(path: Path) -> None:
    with open_store(path) as store:
        statements: list[str] = []
        store._connection.set_trace_callback(statements.append)
        store.find({"variant": "v7", "rows": 1, "cols": 2, "source_hash": "x", "flags": ""})
        plan = store._connection.execute(f"EXPLAIN QUERY PLAN {statements[-1]}").fetchall()
    assert "SEARCH measurements USING INDEX by_candidate" in str(plan)


def test_a_number_of_more_than_64_bits_is_refused(path: Path) -> None:
    with open_store(path) as store:
        for request in (lambda: store.add(row(seed=2**63)), lambda: store.select(rows=2**64)):
            with pytest.raises(UsageError, match="whole numbers of up to 64 bits"):
                request()
        assert store.select() == []


def test_a_row_of_an_unknown_outcome_is_told(path: Path) -> None:
    with open_store(path) as store:
        store.add(PLAIN)
        store._connection.execute("UPDATE measurements SET outcome = 'odd'")
        with pytest.raises(UsageError, match=r"a row that this kgen cannot read: outcome: .*'odd'"):
            store.select()


def test_the_default_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KGEN_DB", str(tmp_path / "mine"))
    with open_store() as store:
        assert store.path == default_path() == tmp_path / "mine"
    monkeypatch.setenv("KGEN_DB", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_path().name == "results.sqlite" and default_path().parent.name == "kgen"


def spawn(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a program that reads and writes lines."""
    command = [sys.executable, "-u", "-c", PREAMBLE + program, *map(str, arguments)]
    root = Path(__file__).parents[2]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=root, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


ADD_FOR_EVER = """
with open_store(Path(sys.argv[1])) as store:
    for number in range(1_000_000):
        store.add(row(seed=number, reason="x" * 3000))
        print(number)
"""


def test_a_killed_process_loses_at_most_the_row_in_flight(path: Path) -> None:
    process = spawn(ADD_FOR_EVER, path)
    assert process.stdout
    for _ in range(50):
        process.stdout.readline()
    process.kill()
    told = 50 + len(process.stdout.read().splitlines())
    process.wait()
    with open_store(path) as store:
        kept = [measurement.seed for measurement in store.select()]
        assert kept == list(range(len(kept))) and told <= len(kept) <= told + 1
        store.add(PLAIN)
        assert len(store.select()) == len(kept) + 1
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)


ADD_TEN = """
print("ready")
sys.stdin.readline()
with open_store(Path(sys.argv[1])) as store:
    for number in range(10):
        store.add(row(run=sys.argv[2], seed=number))
"""


def test_eight_processes_make_one_file_and_add_at_once(path: Path) -> None:
    processes = [spawn(ADD_TEN, path, name) for name in range(8)]
    for process in processes:
        assert process.stdout and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate()[1] for process in processes] == [""] * 8
    with open_store(path) as store:
        assert len(store.select()) == 80
        for name in range(8):
            assert [found.seed for found in store.select(run=str(name))] == list(range(10))


def test_the_columns_of_a_file_are_those_of_a_measurement(path: Path) -> None:
    open_store(path).close()
    found = [row[1] for row in sqlite3.connect(path).execute("PRAGMA table_info(measurements)")]
    assert found == ["id", *COLUMNS]
