"""The order of samples and the end of the rounds, without a clock or a device of their own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from kgen.timing.protocol import REPORT, ROTATED, Protocol
from kgen.timing.rounds import Rounds, is_settled, rounds, run_rounds

NAMES = ["a", "b", "c", "d"]
ENDLESS = Protocol(min_rounds=6, max_rounds=50, precision=1e-9, budget_s=1e9)


def steady(name: str) -> float:
    return 1.0


def wobbling(spread: float) -> Callable[[str], float]:
    """Samples of 1 that differ by the spread, alternately up and down."""
    turns = itertools.cycle((1 - spread, 1 + spread))
    return lambda name: next(turns)


class Interrupts:
    """Samples of 1 until the one with a number, which a person interrupts."""

    def __init__(self, number: int) -> None:
        self.numbers = iter(range(1, number))

    def __call__(self, name: str) -> float:
        if next(self.numbers, None) is None:
            raise KeyboardInterrupt
        return 1.0


def counted(rounds: Rounds) -> dict[str, int]:
    return {name: len(taken) for name, taken in rounds.samples.items()}


def test_every_round_has_every_candidate_once_in_an_order_of_its_own() -> None:
    orders = list(rounds(NAMES, ROTATED))
    assert len(orders) == ROTATED.max_rounds
    assert all(sorted(order) == NAMES for order in orders)
    assert len({tuple(order) for order in orders}) > 20
    firsts = [order[0] for order in orders]
    assert all(firsts.count(name) > 10 for name in NAMES)


def test_the_order_follows_from_the_seed() -> None:
    assert list(rounds(NAMES, ROTATED)) == list(rounds(NAMES, ROTATED))
    assert list(rounds(NAMES, ROTATED)) != list(rounds(NAMES, replace(ROTATED, seed=7)))


def test_one_after_the_other() -> None:
    orders = list(rounds(NAMES, REPORT))
    assert orders == [[name] for name in NAMES for _ in range(10)]


def test_samples_are_taken_in_that_order_and_kept_by_rounds() -> None:
    asked: list[str] = []
    kept: list[dict[str, float]] = []
    protocol = replace(ENDLESS, max_rounds=8)

    def take(name: str) -> float:
        asked.append(name)
        return float(len(asked))

    taken = run_rounds(NAMES, protocol, take, lambda round: kept.append(dict(round)))
    assert asked == [name for order in rounds(NAMES, protocol) for name in order]
    assert counted(taken) == dict.fromkeys(NAMES, 8) and not taken.interrupted
    assert taken.samples == {name: [round[name] for round in kept] for name in NAMES}


@pytest.mark.parametrize(("spread", "done"), [(0, 6), (0.004, 6), (0.006, 50)])
def test_rounds_end_when_all_is_known_precisely_enough(spread: float, done: int) -> None:
    protocol = replace(ENDLESS, precision=0.005)
    assert counted(run_rounds(["a"], protocol, wobbling(spread))) == {"a": done}


def test_precision_is_asked_of_every_candidate() -> None:
    protocol = Protocol(min_rounds=6, precision=0.005)
    assert is_settled([[1.0] * 6, [2.0] * 6], protocol)
    assert not is_settled([[1.0] * 6, [2.0, 2.1] * 3], protocol)
    assert not is_settled([[1.0] * 5], protocol)


@pytest.mark.parametrize(("budget_s", "done"), [(0, 6), (7.5, 8), (1000, 50)])
def test_rounds_end_when_the_budget_is_spent_but_not_before_the_least(
    budget_s: float, done: int
) -> None:
    ticks: Iterator[int] = itertools.count()  # a second a round
    protocol = replace(ENDLESS, budget_s=budget_s)
    taken = run_rounds(["a"], protocol, wobbling(0.1), clock=lambda: float(next(ticks)))
    assert counted(taken) == {"a": done}


def test_one_after_the_other_all_get_the_same_number() -> None:
    taken = run_rounds(NAMES, replace(REPORT, budget_s=0), steady)
    assert counted(taken) == dict.fromkeys(NAMES, 10)


@pytest.mark.parametrize("protocol", [replace(ENDLESS, max_rounds=6), REPORT])
def test_who_fails_drops_out(protocol: Protocol) -> None:
    asked: list[str] = []
    kept: list[set[str]] = []

    def take(name: str) -> float | None:
        asked.append(name)
        return None if name == "b" and asked.count("b") == 2 else 1.0

    taken = run_rounds(NAMES, protocol, take, lambda round: kept.append(set(round)))
    others = ["a", "c", "d"]
    assert counted(taken) == dict.fromkeys(others, protocol.max_rounds)
    assert asked.count("b") == 2 and sum("b" in names for names in kept) == 1


def test_rounds_end_when_nobody_is_left() -> None:
    asked: list[str] = []
    assert run_rounds(["a"], ENDLESS, asked.append).samples == {}
    assert asked == ["a"]
    assert run_rounds([], ENDLESS, steady).samples == {}


def test_an_interrupt_leaves_whole_rounds() -> None:
    taken = run_rounds(NAMES, ENDLESS, Interrupts(4 * 3 + 3))
    assert taken.interrupted and counted(taken) == dict.fromkeys(NAMES, 3)


def test_an_interrupt_of_one_after_the_other_leaves_what_was_taken() -> None:
    taken = run_rounds(NAMES, REPORT, Interrupts(2 * 10 + 5))
    assert taken.interrupted and counted(taken) == {"a": 10, "b": 10, "c": 4, "d": 0}


def test_an_interrupt_before_the_first_round_is_over_is_raised() -> None:
    with pytest.raises(KeyboardInterrupt):
        run_rounds(NAMES, ENDLESS, Interrupts(3))


def test_samples_follow_earlier_ones_which_count() -> None:
    earlier = {name: [5.0] * 4 for name in NAMES}
    taken = run_rounds(NAMES, replace(ENDLESS, precision=10), steady, earlier=earlier)
    assert taken.samples == {name: [5.0] * 4 + [1.0] * 2 for name in NAMES}
    assert earlier == {name: [5.0] * 4 for name in NAMES}
