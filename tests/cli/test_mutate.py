"""`kgen mutate`: numbers that add up, a table, and what cannot be mutated."""

from __future__ import annotations

from collections.abc import Callable

from tests.cli.conftest import Ended

Call = Callable[..., Ended]


def test_numbers_add_up(call: Call) -> None:
    mutated = call("mutate", "k1", "--json")
    found = mutated.json
    assert mutated.code == 0
    assert found["mutants"] == len(found["fates"]) > 10
    assert found["caught"] + found["equivalent"] + found["survivors"] == found["mutants"]
    assert found["survivors"] == 0
    assert {fate["variant"] for fate in found["fates"]} == {"k1"}
    assert all(fate["reason"] for fate in found["fates"] if fate["caught_by"])


def test_the_table_has_a_row_a_variant(call: Call) -> None:
    mutated = call("mutate", "k1")
    assert mutated.code == 0
    (row,) = [line for line in mutated.rows() if line and line[0] == "k1"]
    assert int(row[1]) == sum(int(cell) for cell in row[2:])


def test_files_are_not_mutated(call: Call) -> None:
    refused = call("mutate", "mine.cu")
    assert refused.code == 2 and "mine.cu is a file" in refused.err
