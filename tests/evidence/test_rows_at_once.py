"""Several rows at once: every length of a short row, whatever the last block has of rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgen.evidence.check import check, mixed_rows
from kgen.evidence.inputs import ALL_INPUTS
from kgen.execute import observe, source_for
from kgen.specs.variants import checked
from kgen.sweep.foretold import counts

pytestmark = pytest.mark.slow

# Variants that hold rows of 70 or more, and blocks of 4 to 32 rows.
VARIANTS = [
    "v10:rows_at_once=2,threads_per_row=8,items=3,threads=32",
    "v10:rows_at_once=4,threads_per_row=16,items=2,threads=64,unaligned=shift,row_loop=grid_stride",
    "v10:rows_at_once=4,threads_per_row=32,items=1,threads=32,merge=separate,update=online,vec_scans=first",
    "v10:rows_at_once=2,threads_per_row=4,items=18,threads=16,vec=1,update=three_pass,cache=exps_registers",
    "v10:rows_at_once=2,threads_per_row=1,items=18,threads=16,unaligned=scalar_row,stores=streaming",
]


def failures(variant: str, shapes: list[tuple[int, int]], **how: bool) -> list[str]:
    verdicts = check(checked(variant), shapes=shapes, **how)  # type: ignore[arg-type]
    return [row.reason for row in verdicts if not row.ok]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_short_row(variant: str) -> None:
    per_block = checked(variant).rows_per_block
    assert failures(variant, [(per_block + 1 + cols % 7, cols) for cols in range(1, 71)]) == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_observed_runs_are_silent_whatever_the_last_block_has(variant: str) -> None:
    spec = checked(variant)
    full, groups = spec.rows_per_block, spec.groups_per_block
    rows = sorted({1, groups, groups + 1, full - 1, full, full + 1, 2 * full + groups})
    assert failures(variant, [(of, 67) for of in rows if of], memory=True, races=True) == []


def test_a_row_costs_what_it_costs_alone() -> None:
    rows, cols = 32, 64
    alone, pair = (
        checked(f"v10:threads_per_row=8,threads=64,rows_at_once={number}").resolve(cols)
        for number in (1, 2)
    )
    assert counts(alone, rows, cols) == counts(pair, rows, cols)
    x = mixed_rows(ALL_INPUTS, rows, cols)
    counted = [observe(source_for(of, rows, cols), x).counts for of in (alone, pair)]
    # Groups that may leave name their lanes, and the shuffles of each then count apart.
    one, two = (replace(launch, kernel="", shuffles=0) for [launch] in counted)
    assert one == two
    assert counted[1][0].shuffles == counts(pair, rows, cols)["shuffles"]
