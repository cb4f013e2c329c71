"""Launch plans: grids at and around full blocks, several launches, nothing for empty matrices."""

import pytest

from kgen.errors import UsageError
from kgen.launch import LaunchPlan, plan, plan_last_rows, serial_additions
from kgen.sources.render import render
from kgen.specs.variants import checked


def planned(variant: str, rows: int, cols: int) -> LaunchPlan:
    return plan(render(checked(variant).resolve(max(cols, 1))), rows, cols)


@pytest.mark.parametrize(
    ("variant", "rows", "cols", "grid", "block", "shared"),
    [
        ("k1", 512, 5, 1, 512, 0),
        ("k1", 513, 5, 2, 512, 0),
        ("k3", 7, 5, 7, 32, 0),
        ("v1", 1025, 257, 1025, 256, 0),
        ("v8", 1025, 257, 129, 256, 0),
        ("v8", 1024, 257, 128, 256, 0),
        ("v9", 1025, 257, 256, 256, 0),
        ("v9", 5, 257, 5, 256, 0),
        ("v9:grid=auto", 300, 257, 300, 256, 0),
        ("v5:cache=shared", 3, 257, 3, 256, 257 * 4),
        ("v6:cache=shared", 3, 257, 3, 256, 260 * 4),
        ("v8:cache=shared", 9, 257, 2, 256, 8 * 257 * 4),
        ("v13:cache=inputs_shared", 3, 257, 24, 128, 9 * 4 * 4),  # a block has 9 vectors or fewer
        ("v11:cache=exps_shared_bulk", 3, 257, 3, 256, 260 * 4),
        ("k1:cache=shared,threads=32", 33, 9, 2, 32, 32 * 9 * 4),
        ("v11:next_row=async,grid=4", 9, 4096, 4, 256, 4 * 256 * 16),
        ("v13:next_row=bulk,grid=16,items=3", 9, 4096, 16, 128, 3 * 128 * 16),
        ("v13:next_row=registers,grid=16", 9, 4096, 16, 128, 0),
        ("v10:rows_at_once=2", 33, 67, 2, 256, 0),
        ("v10:rows_at_once=4,threads_per_row=1,threads=32", 257, 17, 3, 32, 0),
        ("cpu", 1025, 257, 1, 1, 0),
    ],
)
def test_one_launch(variant: str, rows: int, cols: int, grid: int, block: int, shared: int) -> None:
    (launch,) = planned(variant, rows, cols).launches
    assert (launch.grid, launch.block, launch.shared_bytes) == (grid, block, shared)
    assert launch.args == ("x", "y", "rows", "cols")


@pytest.mark.parametrize(
    ("variant", "rows", "count", "grid", "skipped"),
    [
        ("v5", 9, 2, 9, 7),
        ("k1", 1025, 513, 3, 1),  # 512 rows a block
        ("v8", 1025, 9, 129, 127),  # 8 rows a block
        ("v10:rows_at_once=2,items=17", 1025, 33, 33, 31),  # 32 rows a block
        ("v9", 1025, 5, 1025, 1020),  # 256 blocks, but for this
        ("t1", 9, 2, 18, 14),  # two tiles a row
    ],
)
def test_the_blocks_of_the_last_rows(
    variant: str, rows: int, count: int, grid: int, skipped: int
) -> None:
    last = plan_last_rows(render(checked(variant)), rows, 1025, count)
    assert (last.rows, last.skipped_rows) == (rows, rows - count)
    assert {(each.grid, each.skipped_blocks) for each in last.launches} == {(grid, skipped)}


def test_t1_is_three_launches_over_a_workspace() -> None:
    made = planned("t1", 3, 1025)
    assert [launch.kernel for launch in made.launches] == [
        "softmax_t1_max",
        "softmax_t1_sum",
        "softmax_t1_write",
    ]
    assert {launch.grid for launch in made.launches} == {6}
    assert made.launches[0].args == ("x", "workspace", "rows", "cols")
    assert made.launches[2].args == ("x", "y", "workspace", "rows", "cols")
    assert made.workspace_bytes == 24


def test_an_online_t1_is_two_launches() -> None:
    assert len(planned("t1:update=online", 3, 1025).launches) == 2


def test_a_static_row_length_is_no_argument() -> None:
    assert planned("v5:static_cols=257", 3, 257).launches[0].args == ("x", "y", "rows")


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_empty_matrices_launch_nothing(shape: tuple[int, int]) -> None:
    assert planned("v7", *shape).launches == ()
    assert planned("t1", *shape).workspace_bytes == 0


def test_a_shape_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="covers 1027 columns"):
        plan(render(checked("v7:items=1")), 1, 1028)


def test_serial_additions_grow_with_a_thread_share() -> None:
    assert serial_additions(checked("k1"), 65536) > 65536
    assert serial_additions(checked("v1"), 65536) < 512
