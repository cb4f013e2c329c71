"""Blocks that share a row in one launch: call after call, and in whatever order they run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kgen import cpu
from kgen.errors import KernelFault
from kgen.evidence.check import check, mixed_rows
from kgen.evidence.inputs import ALL_INPUTS
from kgen.evidence.reference import Criterion, judge
from kgen.execute import find_target, source_for
from kgen.launch import LaunchPlan, plan
from kgen.sources.source import Source
from kgen.specs.variants import checked

TOGETHER = "v14:blocks_per_row=4,threads=32"
SPLIT = [
    TOGETHER,
    "v13:blocks_per_row=4,threads=64",
    "v13:row_split=cluster,threads=64",
    "v13:row_loop=grid_stride,grid=16,threads=64",
    "v13:row_split=cluster,row_loop=grid_stride,grid=16,threads=64",
]
PARTS = [
    "v13:row_order=contiguous,threads=32,items=2",
    "v13:row_order=contiguous,unaligned=shift,blocks_per_row=4,threads=32,items=2",
    "v13:row_order=contiguous,vec=1,trip=runtime,threads=32,items=9,row_loop=grid_stride",
    "v13:row_order=contiguous,row_loop=grid_stride,next_row=bulk,threads=32,items=2",
    "v14:row_order=contiguous,unaligned=scalar_groups,blocks_per_row=4,threads=32,items=4",
]
X = mixed_rows(ALL_INPUTS[:4], 4, 519)
RECEIVES = "while (word >> 32 != launch);"
CLEARS = "Word(slot.words[k]).store(0, cuda::memory_order_relaxed);"


def source(variant: str = TOGETHER) -> Source:
    return source_for(find_target(variant), *X.shape)


def again(of: Source, numbers: list[int]) -> LaunchPlan:
    """The plan of a call, its launch again and again, with these numbers."""
    once = plan(of, *X.shape)
    [launch] = once.launches
    return replace(once, launches=tuple(replace(launch, number=number) for number in numbers))


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [[1] * 1000, [1 + n % 7 for n in range(1000)]])
def test_a_thousand_launches_leave_the_workspace_to_the_next(numbers: list[int]) -> None:
    of = source()
    y = cpu.run(of, again(of, numbers), X)
    assert judge(y, X, Criterion(519, of.spec.op)).ok
    np.testing.assert_array_equal(y, cpu.run(of, again(of, [1]), X))


def test_messages_that_nobody_clears_are_found() -> None:
    of = source()
    assert CLEARS in of.text
    with pytest.raises(KernelFault, match="bytes of the workspace that are not zero"):
        cpu.run(replace(of, text=of.text.replace(CLEARS, "")), again(of, [1]), X)


def test_a_launch_that_was_broken_off_does_not_reach_the_next() -> None:
    """Every run begins with messages of another launch, which are NaN."""
    of = source()
    assert judge(cpu.run(of, again(of, [1]), X), X, Criterion(519, of.spec.op)).ok
    careless = of.text.replace(RECEIVES, "while (word == 0);")
    assert careless != of.text
    with pytest.raises(KernelFault, match="bytes of the workspace that are not zero"):
        cpu.run(replace(of, text=careless), again(of, [1]), X)


@pytest.mark.parametrize("variant", SPLIT)
def test_results_are_the_same_bits_in_every_order(variant: str) -> None:
    of = source(variant)
    first, *others = (
        cpu.run(of, plan(of, *X.shape), X, schedule=schedule, seed=seed)
        for schedule in cpu.SCHEDULES
        for seed in (1, 2)
    )
    assert judge(first, X, Criterion(519, of.spec.op)).ok
    for y in others:
        np.testing.assert_array_equal(y.view(np.int32), first.view(np.int32))


@pytest.mark.slow
@pytest.mark.parametrize("variant", PARTS)
def test_parts_of_a_row_are_the_row(variant: str) -> None:
    """Of lengths that leave the last blocks nothing, or one of them a part that is not whole."""
    shapes = [(9, cols) for cols in (1, 3, 8, 9, 37, 257, 500, 515)]
    verdicts = check(checked(variant), shapes=shapes, memory=True, races=True)
    assert [row.reason for row in verdicts if not row.ok] == []
