"""The settings of a measurement: what they say, and what follows from them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kgen.errors import UsageError
from kgen.timing.protocol import (
    L2,
    L2_MULTIPLE,
    MAX_CALLS,
    MAX_PAIRS,
    REPORT,
    ROTATED,
    Protocol,
    find_protocol,
)
from kgen.toolchain import CompileOptions

MIB = 1 << 20
L2_BYTES = 60 * MIB


@pytest.mark.parametrize("matrix_bytes", [MIB, 3 * MIB + 4, 16 * MIB, 120 * MIB, 4096 * MIB])
def test_pairs_in_turn_exceed_the_l2(matrix_bytes: int) -> None:
    pairs = ROTATED.pairs(matrix_bytes, L2_BYTES)
    # What the other pairs hold pushes a pair out before its turn comes again.
    assert (pairs - 1) * 2 * matrix_bytes >= L2_MULTIPLE * L2_BYTES
    assert pairs == 2 or (pairs - 2) * 2 * matrix_bytes < L2_MULTIPLE * L2_BYTES
    assert 2 <= pairs <= MAX_PAIRS


@pytest.mark.parametrize(("matrix_bytes", "pairs"), [(4, MAX_PAIRS), (100 * MIB, 3), (2**40, 2)])
def test_pairs_have_limits(matrix_bytes: int, pairs: int) -> None:
    assert ROTATED.pairs(matrix_bytes, L2_BYTES) == pairs


def test_warm_calls_have_one_pair() -> None:
    assert replace(ROTATED, l2=L2.WARM).pairs(4, L2_BYTES) == 1
    assert REPORT.pairs(4, L2_BYTES) == 1


@pytest.mark.parametrize(
    ("call_us", "pairs", "calls"),
    [
        (10, 1, 100),
        (10, 16, 96),
        (2.0, 1024, 1024),
        (0.1, 1024, MAX_CALLS),
        (0.1, 3000, 3000),
        (30000, 2, 2),
        (0, 1, MAX_CALLS),
    ],
)
def test_a_sample_has_whole_turns_of_about_a_millisecond(
    call_us: float, pairs: int, calls: int
) -> None:
    assert ROTATED.calls_per_sample(call_us, pairs) == calls
    assert calls % pairs == 0


def test_a_protocol_may_say_how_many_calls() -> None:
    assert REPORT.calls_per_sample(1e6, 7) == 100


@pytest.mark.parametrize(
    "protocol",
    [ROTATED, REPORT, Protocol(options=CompileOptions(maxrregcount=64, lineinfo=True), seed=7)],
)
def test_settings_survive_as_json(protocol: Protocol) -> None:
    assert Protocol.from_json(protocol.as_json()) == protocol


def test_settings_of_other_versions() -> None:
    settings = json.loads(ROTATED.as_json()) | {"moon": "full"}
    del settings["precision"]
    assert Protocol.from_json(json.dumps(settings)) == ROTATED


def test_the_method_is_told_in_words() -> None:
    assert str(ROTATED) == (
        "L2 cold (calls rotate over inputs and outputs of four times the L2), replayed as a CUDA "
        "graph, all candidates in shuffled rounds, by CUDA events"
    )
    assert str(REPORT) == (
        "L2 warm (every call has the same input and output), 100 launches by PyCUDA, one after "
        "the other, by CUDA events"
    )


def test_a_protocol_is_found_and_changed() -> None:
    assert find_protocol("rotated") == ROTATED and find_protocol("report", seed=None) == REPORT
    changed = find_protocol("rotated", "warm", seed=3, budget_s=1.5, input_name="zeros")
    assert changed == replace(ROTATED, l2=L2.WARM, seed=3, budget_s=1.5, input_name="zeros")


@pytest.mark.parametrize(
    ("name", "l2", "input_name", "words"),
    [
        ("rotatd", None, None, "there is no protocol 'rotatd'; did you mean 'rotated'"),
        ("rotated", "hot", None, "--l2 hot: the L2 cache is cold or warm"),
        ("rotated", "", None, "--l2 : the L2 cache is cold or warm"),
        ("report", None, "unifrom", "no input is called 'unifrom'; did you mean 'uniform'?"),
    ],
)
def test_what_there_is_not(name: str, l2: str | None, input_name: str | None, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        find_protocol(name, l2, input_name=input_name)
    assert words in str(refused.value)
