"""`kgen count`: the figures as a table and as JSON."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from typer.testing import CliRunner

from kgen.cli.app import app
from kgen.cpu.observation import Counts
from kgen.errors import UsageError


def kgen(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    if result.exception:
        raise result.exception
    return result.output


def test_json_has_sums_and_kernels() -> None:
    arguments = ("count", "v3", "t1", "--rows", "2", "--cols", "4096", "--json")
    v3, t1 = json.loads(kgen(*arguments))
    totals = ["global_loads", "global_stores", "shared_loads", "shared_stores"]
    figures = [field.name for field in fields(Counts)][1:]  # in whatever order they were observed
    assert list(v3["kernels"][0]) == ["kernel", *totals, *figures]
    assert (v3["variant"], v3["rows"], v3["cols"]) == ("v3", 2, 4096)
    assert (v3["global_loads"], v3["global_stores"]) == (2 * 128, 2 * 128)
    assert v3["kernels"][0]["kernel"] == "softmax_v3_items16"
    assert len(t1["kernels"]) == 3
    assert t1["global_loads"] == sum(kernel["global_loads"] for kernel in t1["kernels"])


def test_table_has_the_variants_side_by_side() -> None:
    output = kgen("count", "v5", "v8", "--rows", "8", "--cols", "257")
    header, loads = output.splitlines()[1:3]
    assert header.split() == ["warp", "instructions", "v5", "v8"]
    assert loads.split() == ["global", "loads", "144", "144"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cpu",), "it has no warps to count"),
        (("v5", "--rows", "0"), "0 x 4096 has no elements"),
        (("v9000",), "v9000"),
    ],
)
def test_what_cannot_be_counted_is_refused(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        kgen("count", *arguments)
