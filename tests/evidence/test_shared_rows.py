"""Rows in shared memory: copied there, turned into exponentials there, in parts of several blocks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kgen.evidence.check import check
from kgen.execute import find_target, source_for
from kgen.overlay import Overlay
from kgen.sources.source import Source
from kgen.specs.variants import parse

SOFTMIN = Path(__file__).parents[2] / "examples" / "softmin"
SHAPES = [(3, 67), (5, 64), (9, 519), (17, 1028), (2, 1), (33, 5)]
VARIANTS = [
    "v1:cache=exps_shared",
    "v11:cache=exps_shared,row_loop=grid_stride",
    "v11:cache=inputs_shared_async,threads=64",
    "v3:cache=exps_shared_async,threads=64",
    "v8:cache=inputs_shared_async,vec=4",
    "v8:cache=inputs_shared_bulk,vec=4,row_loop=grid_stride",
    "v5:cache=inputs_shared_bulk,vec=4,threads_per_row=64",
    "k1:cache=inputs_shared_bulk,vec=4,threads=32",
    "t2:cache=inputs_shared_async,tile=96,threads=64",
    "v6:cache=inputs_shared_async,vec_scans=second",
    "v13:cache=inputs_shared,vec_scans=first,threads=64",
    "v13:cache=exps_shared_async,row_split=cluster,row_loop=grid_stride,threads=64",
    "v13:cache=exps_shared_bulk,row_loop=grid_stride,threads=64,blocks_per_row=4",
    "v14:cache=inputs_shared_bulk,blocks_per_row=4,threads=64",
    "v11:cache=inputs_shared_bulk,static_cols=519,threads=64",
]


@pytest.mark.parametrize("variant", VARIANTS)
def test_results_are_right_and_observed_runs_silent(variant: str) -> None:
    spec = find_target(variant)
    shapes = [shape for shape in SHAPES if spec.static_cols in (None, shape[1])]
    for row in check(spec, shapes=shapes, memory=True, races=True):
        assert row.ok, row.reason


@pytest.mark.parametrize("cache", ["inputs_shared", "inputs_shared_async", "exps_shared_bulk"])
def test_an_operation_takes_the_elements_of_a_copy(cache: str) -> None:
    """A copy has the matrix as it is, so every scan asks what the operation takes of it."""
    negated = parse(f"v11:cache={cache},op=softmin,threads=64", Overlay(SOFTMIN))
    assert all(row.ok for row in check(negated, shapes=SHAPES[:3]))


ASYNC = "v11:cache=exps_shared_async,threads=64"
BULK = "v11:cache=exps_shared_bulk,threads=64,row_loop=grid_stride,grid=2"
CLUSTER = "v13:cache=inputs_shared_bulk,threads=64,blocks_per_row=4"
BARRIER = "__syncthreads();  // the barrier that tells of the vectors is there"


def changed(variant: str, before: str = "", after: str = "") -> Source:
    source = source_for(find_target(variant), *SHAPES[2])
    assert before in source.text
    return replace(source, text=source.text.replace(before, after))


@pytest.mark.parametrize(
    ("variant", "before", "after"),
    [
        (ASYNC, "__pipeline_wait_prior(0);", ""),
        (ASYNC, "__pipeline_commit();", ""),
        (BULK, "while (!ptx::mbarrier_try_wait_parity(&row_came, parity)) {\n        }", ""),
        (BULK, "parity ^= 1;", ""),
        (BULK, "vecs * sizeof(Vec)", "(vecs - 1) * sizeof(Vec)"),
        (BULK, BARRIER, ""),
        (BULK, "__syncthreads();  // all have read before the next row writes there", ""),
        (BULK, "// the next row is copied over what was written here\n        ptx::fence", "//"),
        (CLUSTER, "rank * part_size", "rank * (part_size - VEC_SIZE)"),
        (CLUSTER, "cols - first_col)", "cols)"),
    ],
)
def test_mistakes_of_copies_are_found(variant: str, before: str, after: str) -> None:
    wrong = changed(variant, before, after)
    shapes = [(9, 520), (9, 519)]
    assert any(not row.ok for row in check(wrong, shapes=shapes, memory=True, races=True))


def test_a_row_longer_than_a_block_holds_is_shared_by_the_blocks_of_a_cluster() -> None:
    spec = find_target("v13:cache=exps_shared_bulk,threads=256")
    (row,) = check(spec, shapes=[(1, 100_001)], schedules=("in_order",))
    assert row.ok and np.isfinite(row.max_abs_error)
