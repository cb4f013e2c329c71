"""A block's next row on its way while it works on one: every row is right, whatever the order."""

from __future__ import annotations

import numpy as np
import pytest

from kgen import cpu
from kgen.evidence.check import mixed_rows
from kgen.evidence.inputs import ALL_INPUTS, make
from kgen.evidence.reference import judge
from kgen.execute import find_target, observe, source_for
from kgen.launch import plan, serial_additions

pytestmark = pytest.mark.usefixtures("cxx")

BLOCK = "v11:row_loop=grid_stride,threads=64,grid=3"
CLUSTER = "v13:row_loop=grid_stride,blocks_per_row=4,threads=64,grid=8"
AHEAD = ("registers", "async", "bulk")


@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize(
    "base", [BLOCK, f"{BLOCK},unaligned=scalar_row", f"{CLUSTER},unaligned=shift"]
)
@pytest.mark.parametrize(("rows", "cols"), [(1, 257), (2, 1024), (14, 517), (9, 1030)])
def test_rows_are_right(base: str, ahead: str, rows: int, cols: int) -> None:
    source = source_for(find_target(f"{base},next_row={ahead}"), rows, cols)
    x = mixed_rows(ALL_INPUTS, rows, cols)
    for schedule in ("in_order", "reversed"):
        y = cpu.run(source, plan(source, rows, cols), x, schedule=schedule)
        assert judge(y, x, serial_additions(source.spec, cols)).reason == ""


@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize("base", [BLOCK, CLUSTER])
def test_rows_are_loaded_once(base: str, ahead: str) -> None:
    """As without: every row once, and no row behind the last."""
    counted = [
        observe(find_target(f"{base},next_row={word}"), make("uniform", 7, 2048)).counts[0]
        for word in ("none", ahead)
    ]
    assert counted[0].global_bytes_loaded == counted[1].global_bytes_loaded == 7 * 2048 * 4


@pytest.mark.parametrize("ahead", AHEAD)
def test_results_are_those_of_rows_in_their_turn(ahead: str) -> None:
    x = make("uniform", 11, 1500)
    outputs = []
    for word in ("none", ahead):
        source = source_for(find_target(f"{CLUSTER},next_row={word}"), *x.shape)
        outputs.append(cpu.run(source, plan(source, *x.shape), x))
    assert np.array_equal(*outputs)
