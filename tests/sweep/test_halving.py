"""Which candidates stay, and what a search is called."""

from __future__ import annotations

import pytest

from kgen.errors import UsageError
from kgen.sweep.halving import Halving, Search, find_search


def test_a_quarter_stays_and_whoever_is_close() -> None:
    halving = Halving(finalists=1, margin=0.02)
    times = {f"v{i}": [10.0 + 5 * i] for i in range(8)}
    assert halving.survivors(times) == ["v0", "v1"]
    assert halving.survivors(times | {"close": [10.19], "too": [10.1]}) == ["v0", "too", "close"]


def test_no_fewer_than_the_finalists_stay() -> None:
    times = {f"v{i}": [1.0 + i] for i in range(6)}
    assert len(Halving(finalists=4).survivors(times)) == 4
    assert Halving().survivors({}) == []


def test_a_disturbed_sample_costs_nobody_a_place() -> None:
    times = {"fast": [90.0, 1.0], **{f"v{i}": [2.0 + i, 2.0 + i] for i in range(7)}}
    assert Halving(finalists=1).survivors(times)[0] == "fast"


def test_rungs_end_when_few_are_left_or_nobody_leaves() -> None:
    halving = Halving(finalists=4)
    assert halving.is_over(20, 4) and halving.is_over(20, 20)
    assert not halving.is_over(20, 5)


def test_a_search_by_name() -> None:
    assert find_search("full") is Search.FULL
    with pytest.raises(UsageError, match="there is no search 'half'; did you mean 'halving'"):
        find_search("half")
