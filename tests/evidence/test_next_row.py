"""A block's next row on its way while it works on one: every row is right, whatever the order."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from kgen import cpu
from kgen.evidence.check import check, mixed_rows
from kgen.evidence.failures import MEMORY, RACE, observed_failures
from kgen.evidence.inputs import ALL_INPUTS, make
from kgen.evidence.reference import Criterion, criterion, judge
from kgen.execute import find_target, observe, source_for
from kgen.launch import plan

pytestmark = pytest.mark.usefixtures("cxx")

BLOCK = "v11:row_loop=grid_stride,threads=64,grid=3"
CLUSTER = "v13:row_loop=grid_stride,blocks_per_row=4,threads=64,grid=8"
AHEAD = ("registers", "async", "bulk")
# Where x and y begin, in elements from a boundary of vectors: y where x is, and elsewhere.
PLACES = [(0, 0), (1, 1), (0, 2), (2, 0), (1, 2), (1, 3)]


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
        assert judge(y, x, criterion(source.spec, cols)).reason == ""


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


@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize("base", [CLUSTER, f"{BLOCK},vec_scans=first"])
def test_rows_are_right_wherever_they_lie(base: str, ahead: str) -> None:
    """Rows on a boundary in x alone come ahead in vain, and must not be in the way of the next."""
    source = source_for(find_target(f"{base},next_row={ahead}"), 9, 518)
    x = mixed_rows(ALL_INPUTS[:5], 9, 518)
    for offsets in PLACES:
        made = plan(source, *x.shape)
        y = cpu.run(source, made, x, offsets=offsets, schedule="reversed")
        assert judge(y, x, criterion(source.spec, 518)).ok, offsets


@pytest.mark.parametrize("cols", [1, 3])
def test_rows_without_a_vector_come_in_bulk(cols: int) -> None:
    source = source_for(find_target(f"{CLUSTER},next_row=bulk"), 9, cols)
    assert source.spec.items_per_thread == 0
    x = make("uniform", 9, cols)
    assert judge(cpu.run(source, plan(source, 9, cols), x), x, Criterion(9)).ok


@pytest.mark.slow
@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize("base", [CLUSTER, f"{CLUSTER},unaligned=shift", BLOCK])
def test_nothing_is_seen_when_every_access_is(base: str, ahead: str) -> None:
    source = source_for(find_target(f"{base},next_row={ahead}"), 5, 518)
    x = mixed_rows(ALL_INPUTS[:2], 5, 518)
    assert list(observed_failures(source, x, "random", 60.0, (MEMORY, RACE))) == []


FETCH = r"(const int next_row[^;]*;\s*//[^\n]*\n\s*if [^;]*;)"
LOAD = r"(load_row\(values, x_row[^;]*;)"
# what is wrong -> (choice, pattern in the source, what the mistake makes of it)
MUTANTS = {
    "the copies are not waited for": ("async", r"__pipeline_wait_prior\(0\);", ";"),
    "the row after the next": ("async", r"next_row = row \+", "next_row = row + 1 +"),
    "filled before it is read": ("async", rf"{LOAD}\s*{FETCH}", r"\2 \1"),
    "filled before all have read": ("bulk", rf"{LOAD}\s*(__sync[^\n]*\n)\s*{FETCH}", r"\3 \2 \1"),
    "no barrier before it is filled": ("bulk", r"__syncthreads\(\);(  // all have what)", r";\1"),
    "no barrier before it is waited for": ("bulk", r"__syncthreads\(\);(  // the barrier)", r";\1"),
    "every phase is the first": ("bulk", r"parity \^= 1;", ";"),
    "bytes of the last copy alone": ("bulk", r"bytes \+= size", "bytes = size"),
    "rows past the last": ("async", r"next_row < rows", "true"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("ahead", "old", "new"), MUTANTS.values(), ids=MUTANTS)
def test_a_mistake_is_caught(ahead: str, old: str, new: str) -> None:
    variant = f"{CLUSTER},next_row={ahead}"
    source = source_for(find_target(variant.replace("threads=64", "threads=32")), 9, 518)
    text, number = re.subn(old, new, source.text)
    assert number == 1
    mutant = replace(source, text=text)
    verdicts = check(mutant, shapes=[(9, 518)], timeout_s=10.0, memory=True, races=True)
    assert not all(row.ok for row in verdicts)
