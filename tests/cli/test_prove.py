"""run and check: arrays in and out, and kernels that are wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import kgen
from kgen.evidence.inputs import ALL_INPUTS, make
from kgen.evidence.reference import reference64
from tests.cli.conftest import Ended

Call = Callable[..., Ended]
pytestmark = pytest.mark.usefixtures("cxx")

TAIL = ("c = vecs * VEC_SIZE + threadIdx.x", "c = cols + threadIdx.x")


@pytest.mark.parametrize("shape", [(5, 67), (67,)])
def test_run_reads_and_writes_npy(call: Call, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    np.save("x.npy", np.asfortranarray(x))
    ran = call("run", "v8", "--input", "x.npy", "--output", "made/y.npy")
    assert ran.code == 0 and ran.err == ""
    facts = {words[0]: words[1:] for words in ran.rows() if words}
    assert facts["variant"] == ["v8"] and facts["ok"] == ["True"]
    assert facts["output"] == ["made/y.npy"]
    y = np.load("made/y.npy")
    assert y.dtype == np.float32 and y.shape == shape
    expected = reference64(x.reshape(-1, shape[-1])).reshape(shape)
    np.testing.assert_allclose(y, expected, rtol=2e-6)


@pytest.mark.parametrize("order", ["C", "F"])
def test_run_reads_from_a_pipe(call: Call, order: Literal["C", "F"]) -> None:
    x = make("uniform", 300, 67)  # more than a pipe holds
    np.save("x.npy", x.copy(order))
    saved = Path("x.npy").read_bytes()
    os.mkfifo("pipe")
    with ThreadPoolExecutor(1) as writer:
        written = writer.submit(Path("pipe").write_bytes, saved)
        ran = call("run", "v8", "--input", "pipe", "--json")
    assert (ran.code, ran.json["ok"], ran.json["shape"]) == (0, True, [300, 67])
    assert written.result() == len(saved)


def test_run_makes_its_input_from_shape_distribution_and_seed(call: Call) -> None:
    made = ("run", "v7", "--items", 1, "--rows", 3, "--cols", 50, "--dist", "outliers")
    ran = call(*made, "--seed", 7, "--output", "y7.npy", "--json")
    assert ran.code == 0
    assert ran.json["variant"] == "v7:items=1" and ran.json["on"] == "cpu"
    assert ran.json["shape"] == [3, 50] and ran.json["output"] == "y7.npy"
    assert ran.json["ok"] is True
    for error in ("max_abs_error", "max_rel_error", "row_sum_error"):
        assert 0 <= ran.json[error] < 1e-5
    expected = kgen.run("v7:items=1", make("outliers", 3, 50, 7))
    np.testing.assert_array_equal(np.load("y7.npy"), expected)
    call(*made, "--seed", 8, "--output", "y8.npy")
    assert (np.load("y7.npy") != np.load("y8.npy")).any()


def test_run_of_an_edited_file_runs_the_edit(call: Call, edited: Callable[..., Path]) -> None:
    path = edited("v5", "* inverse_sum", "* (2.0f * inverse_sum)")
    ran = call("run", path, "--rows", 2, "--cols", 33, "--output", "y.npy", "--json")
    assert ran.code == 1
    assert ran.err.startswith(f"kgen: {path} on cpu is wrong: element (row ")
    assert ran.json["ok"] is False and ran.json["variant"] == str(path)
    np.testing.assert_allclose(np.load("y.npy").sum(axis=1), 2, rtol=1e-5)


def test_check_of_variants_on_a_shape(call: Call) -> None:
    checked = call("check", "v5", "v7:items=2", "cpu", "--rows", 14, "--cols", 100)
    assert checked.code == 0 and checked.err == ""
    assert [(words[0], words[1], words[-1]) for words in checked.rows()[2:]] == [
        ("v5", "1", "ok"),
        ("v7:items=2", "1", "ok"),
        ("cpu", "1", "ok"),
    ]


def test_check_as_json(call: Call) -> None:
    said = call("check", "v5", "--rows", 14, "--cols", 100, "--json").json
    (row,) = said["checks"]
    assert (row["variant"], row["rows"], row["cols"], row["ok"]) == ("v5", 14, 100, True)
    assert tuple(row["inputs"]) == ALL_INPUTS and said["failures"] == []
    assert 0 < row["max_rel_error"] < 1e-5
    chosen = call("check", "v5", "--rows", 2, "--cols", 9, "--input", "huge", "--json").json
    assert chosen["checks"][0]["inputs"] == ["huge"]


def test_check_takes_the_usual_shapes_by_default(call: Call) -> None:
    rows = call("check", "v8", "--schedule", "reversed", "--json").json["checks"]
    assert len(rows) > 10 and all(row["ok"] for row in rows)
    assert {(1025, 257), (1, 1)} <= {(row["rows"], row["cols"]) for row in rows}


def test_a_dropped_tail_fails_the_check(call: Call, edited: Callable[..., Path]) -> None:
    path = edited("v6_double", *TAIL)
    failed = call("check", path, "v5", "--rows", 14, "--cols", 1027)
    assert failed.code == 1
    verdicts = {words[0]: words[-1] for words in failed.rows()[2:4]}
    assert verdicts == {str(path): "FAILED", "v5": "ok"}
    assert failed.err.startswith(
        f"kgen: 1 of 2 checks failed: {path} at 14 x 1027: {path}: kernel softmax_v6_double: "
        "nobody writes element 1024 of y; and 1 more"
    )


@pytest.fixture
def few_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of the usual shapes."""
    shapes = [(42, 1), (42, 2), (42, 4), (42, 33), (42, 1024), (1025, 257)]
    monkeypatch.setattr("kgen.evidence.check.boundary_shapes", lambda spec: shapes)


@pytest.mark.usefixtures("few_shapes")
def test_every_shape_with_a_tail_fails(call: Call, edited: Callable[..., Path]) -> None:
    failed = call("check", edited("v6_double", *TAIL), "--json")
    assert failed.code == 1
    checks = failed.json["checks"]
    assert [row["cols"] for row in checks if row["ok"] and row["cols"] % 4] == []
    bad = [[row["rows"], row["cols"]] for row in checks if not row["ok"]]
    unwritten, wrong = failed.json["failures"]
    assert (unwritten["kind"], wrong["kind"]) == ("memory", "result")
    for found in (unwritten, wrong):  # some show off alignment only
        assert found["count"] >= len(bad) - 1 and found["shapes"] == bad[:3]
    assert failed.err.startswith(f"kgen: {len(bad)} of {len(checks)} checks failed: ")
    assert re.search(r" and \d more: ", failed.err) and len(failed.err) < 500, failed.err


def test_a_fault_is_a_failed_row_with_the_line(call: Call, edited: Callable[..., Path]) -> None:
    path = edited(
        "v5", "    __syncthreads();  // the row's state", "    if (lane) __syncthreads();  //"
    )
    failed = call("check", path, "--rows", 2, "--cols", 33, "--json")
    (row,), (found,) = failed.json.values()
    assert failed.code == 1 and row["ok"] is False and row["max_abs_error"] is None
    line = path.read_text().partition("if (lane) __sync")[0].count("\n") + 1
    assert (found["kind"], found["lines"]) == ("fault", [line])
    assert f"{path}:{line}:" in found["message"]


def test_a_file_that_does_not_compile_fails_once_with_the_compilers_words(
    call: Call, edited: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgen.evidence.check.boundary_shapes", lambda spec: [(2, 3), (2, 4)])
    path = edited("v5", "expf(-fabsf(", "exqf(-fabsf(")
    line = path.read_text().partition("exqf")[0].count("\n") + 1
    for command in ("check", "run"):
        failed = call(command, path)
        assert failed.code == 1
        assert failed.err.count(" rejects it:") == 1 and f"\n{path}:{line}:" in failed.err
        assert "exqf" in failed.err


SHARED = "__shared__ State warp_states[WARPS_PER_BLOCK];"
STORE = "if (lane == 0) warp_states[warp] = state;"
RESULT_READ = "lane < WARPS_PER_BLOCK ? warp_states[lane]"
ARRAY = "shared array row_reduce(State)::warp_states"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (SHARED, SHARED.replace("WARPS_PER_BLOCK", "4"), f"thread 128: write out of bounds, 0 bytes past the end of {ARRAY} (32 bytes)"),
        (STORE, STORE.replace("[warp]", "[warp + 1]"), f"thread 224: write out of bounds, 0 bytes past the end of {ARRAY} (64 bytes)"),
        (STORE, STORE.replace("[warp]", "[100000 * warp]"), f"thread 32: write out of bounds, 799936 bytes past the end of {ARRAY} (64 bytes)"),
        (STORE, STORE.replace("[warp]", "[-2000 * warp]"), f"thread 32: write out of bounds, 16000 bytes before the start of {ARRAY} (64 bytes)"),
        (RESULT_READ, RESULT_READ.replace("[lane]", "[lane + 1]"), f"thread 7: read out of bounds, 0 bytes past the end of {ARRAY} (64 bytes)"),
    ],
)  # fmt: skip
def test_a_wrong_index_is_named_before_what_it_does(
    call: Call, edited: Callable[..., Path], old: str, new: str, words: str
) -> None:
    path = edited("v5", old, new)
    line = (
        path.read_text().partition("warp_states[warp]" if old == SHARED else new)[0].count("\n") + 1
    )
    shape = ("--rows", 3, "--cols", 33)
    for command in ("check", "run"):
        failed = call(command, path, *shape)
        assert failed.code == 1 and failed.err.count("\n") == 1
        assert f"{path}:{line}: kernel softmax_v5, block 0, {words}; " in failed.err
    first, *others = call("check", path, *shape, "--json").json["failures"]
    assert (first["kind"], first["lines"]) == ("memory", [line])
    assert {other["kind"] for other in others} & {"fault", "result"}


def test_a_read_past_the_row_is_named_before_the_nan(
    call: Call, edited: Callable[..., Path]
) -> None:
    path = edited("v1", "thread_max = -FLT_MAX;", "thread_max = fmaxf(-FLT_MAX, x_row[cols]);")
    failed = call("check", path, "--rows", 14, "--cols", 33)
    assert "thread 0: read out of bounds, 0 bytes past the end of x (396 bytes); " in failed.err
    kinds = [words[0] for words in failed.rows() if words and words[0] in ("memory", "result")]
    assert kinds == ["memory", "result"]


@pytest.mark.usefixtures("few_shapes")
def test_a_race_is_told_first_with_both_lines(call: Call, edited: Callable[..., Path]) -> None:
    path = edited("c1", "__syncthreads();  // all have read", "  // ")
    failed = call("check", path, "--races", "--json")
    race, result = failed.json["failures"]
    first, second = race["lines"]
    assert (race["kind"], result["kind"]) == ("race", "result")
    assert f"on line {first}" in race["message"] and f"on line {second}" in race["message"]
    assert race["count"] == len(failed.json["checks"]) - 1  # far rows are not observed
    assert len(race["shapes"]) == 3
    assert f": {race['message']}; and 1 more" in failed.err
