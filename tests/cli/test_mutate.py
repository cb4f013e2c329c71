"""`kgen mutate`: numbers that add up, a table, and what cannot be mutated."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from kgen.evidence.mutation import campaign as campaigns
from kgen.evidence.mutation.campaign import MutantResult, campaign
from kgen.specs.variants import checked
from tests.cli.conftest import Ended

pytestmark = pytest.mark.slow

Call = Callable[..., Ended]


@functools.cache
def results_of_k1() -> list[MutantResult]:
    """What becomes of the mutants of k1, which takes seconds."""
    return list(campaign([checked("k1")]))


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command finds the results of k1 where they were found before."""

    def found(specs: object) -> list[MutantResult]:
        assert list(specs) == [checked("k1")]  # type: ignore[call-overload]
        return results_of_k1()

    monkeypatch.setattr(campaigns, "campaign", found)


@pytest.mark.usefixtures("once")
def test_numbers_add_up(call: Call) -> None:
    mutated = call("mutate", "k1", "--json")
    found = mutated.json
    assert mutated.code == 0
    assert found["mutants"] == len(found["results"]) > 10
    assert found["caught"] + found["equivalent"] + found["survivors"] == found["mutants"]
    assert found["survivors"] == 0
    assert {result["variant"] for result in found["results"]} == {"k1"}
    assert all(result["reason"] for result in found["results"] if result["caught_by"])


@pytest.mark.usefixtures("once")
def test_each_mutant_is_printed_with_its_line_and_what_catches_it(call: Call) -> None:
    mutated, found = call("mutate", "k1"), call("mutate", "k1", "--json").json
    assert mutated.code == 0
    *lines, _, total = mutated.out.splitlines()[1:]
    assert len(lines) == found["mutants"]
    for line, result in zip(lines, found["results"], strict=True):
        mistake, _, change = result["mutant"].partition(": ")
        assert line.split()[:2] == ["k1", str(result["line"])]
        assert mistake.partition(",")[0] in line and change in line
        assert line.split()[-1] == result["caught_by"]
    assert (
        total == f"{found['mutants']} mutants: {found['caught']} caught, 0 do the same, 0 survive"
    )


def test_what_does_the_same_says_why(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgen.evidence.mutation.campaign.first_failure", lambda source: None)
    written = "kgen.evidence.mutation.campaign._why_equivalent"
    monkeypatch.setattr(written, lambda original, mutant: "it is the same" * (mutant.line > 30))
    out = call("mutate", "k1").out
    assert "nothing, and it does the same: it is the same\n" in out.replace(" \n", "\n")
    survivors = [line for line in out.splitlines() if line.rstrip().endswith("nothing")]
    assert survivors and out.endswith(f"{len(survivors)} survive\n")


@pytest.mark.usefixtures("once")
def test_the_summary_has_a_row_a_variant(call: Call) -> None:
    mutated = call("mutate", "k1", "--summary")
    assert mutated.code == 0
    (row,) = [line for line in mutated.rows() if line and line[0] == "k1"]
    assert int(row[1]) == sum(int(cell) for cell in row[2:])


def test_files_are_not_mutated(call: Call) -> None:
    refused = call("mutate", "mine.cu")
    assert refused.code == 2 and "mine.cu cannot be read" in refused.err
