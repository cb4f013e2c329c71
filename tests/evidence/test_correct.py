"""Every version and sampled combinations are right, run on the CPU from the very file nvcc gets."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kgen
from kgen.errors import UsageError
from kgen.evidence.check import ROWS_PER_INPUT, _in_turn, boundary_shapes, check, mixed_rows
from kgen.evidence.inputs import ALL_INPUTS, make
from kgen.evidence.reference import Criterion, criterion, judge
from kgen.execute import run
from kgen.specs.rules import problems_for
from kgen.specs.rules.shapes import most_rows
from kgen.specs.spec import Spec
from kgen.specs.variants import checked
from kgen.specs.versions import VERSIONS
from tests.strategies import valid_specs

pytestmark = pytest.mark.slow

COLS = [1, 2, 3, 5, 31, 33, 64, 67, 129, 257, 260, 1000, 1027]


def failures(variant: str, **how: object) -> list[str]:
    return [row.reason for row in check(checked(variant), **how) if not row.ok]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", VERSIONS)
def test_versions_at_their_boundaries(name: str) -> None:
    assert failures(name) == []


@pytest.mark.parametrize("schedule", ["reversed", "warp_greedy", "random"])
@pytest.mark.parametrize("name", [name for name in VERSIONS if name != "cpu"])
def test_versions_in_other_orders_of_threads(name: str, schedule: str) -> None:
    spec = VERSIONS[name].spec
    shapes = [(min(45, most_rows(spec)), cols) for cols in (257, 1027)]
    fitting = [shape for shape in shapes if not problems_for(spec, *shape)]
    assert failures(name, schedules=(schedule,), shapes=fitting) == []


@pytest.mark.parametrize(
    "variant",
    [
        "v1:vec=4", "v2:vec=2,vec_scans=first", "v2:vec=4,vec_scans=second", "k2:vec=4", "k4:vec=2",
        "v4:vec=4,unaligned=scalar_groups", "v5:cache=shared", "v6:cache=shared", "v8:cache=shared,vec=4",
        "v8:vec=4,cache=registers", "v9:cache=registers", "v9:merge=separate", "v7:unaligned=scalar_row",
        "v7:vec_scans=first", "v7:vec_scans=second,unaligned=scalar_row", "v3:vec=4", "v3:trip=runtime",
        "v7:trip=runtime", "v5:update=online_branch", "v5:row_map=thread", "v5:row_map=grid",
        "k3:vec=4,vec_scans=first", "k3:cache=shared,vec=4,vec_scans=second", "v1:merge=paired",
        "k2:merge=paired", "v3:merge=paired", "t1:update=online", "t1:cache=exps_output,vec=4",
        "t1:update=online_tile", "t2:merge=paired", "t2:cache=registers", "t2:cache=shared,vec=4",
        "t2:threads=96", "t2:vec=4", "v8:topology=tree", "v5:topology=tree,threads=2", "v8:prefetch=true,vec=4",
        "v5:exp=__expf", "v5:exp=exp2", "k1:update=online_shared", "cpu:update=online_branch,exp=exp2",
        "v9:cache=shared,grid=3", "v9:topology=warp,cache=shared,threads=32,grid=2",
        "t2:row_map=grid_stride,cache=shared,vec=4,grid=3", "v9:cache=shared,unaligned=scalar_groups,grid=3",
        "v6:static_cols=257", "v9:cache=shared,vec=4,vec_scans=first", "v5:min_blocks=2,normalize=divide",
    ],
)  # fmt: skip
def test_combinations_at_their_boundaries(variant: str) -> None:
    assert failures(variant) == []


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(valid_specs(), st.sampled_from(COLS), st.integers(1, 20))
def test_any_valid_combination_is_right(spec: Spec, cols: int, rows: int) -> None:
    cols = spec.static_cols or cols
    if problems_for(spec, rows, cols):
        return
    x = mixed_rows(ALL_INPUTS, rows, cols, spec.dtype)
    verdict = judge(run(spec, x), x, criterion(spec, cols))
    assert verdict.ok, verdict.reason


@pytest.mark.parametrize("name", VERSIONS)
def test_special_values_give_what_pytorch_gives(name: str) -> None:
    inf, nan = np.inf, np.nan
    x = np.array(
        [[-inf, 0, 1, 2], [0, nan, 1, 2], [0, 1, inf, 2], [-inf] * 4, [inf, -inf, 0, 0], [5] * 4],
        np.float32,
    )
    parts = np.split(x, range(2, len(x), 2))  # as many rows as every version takes
    y = np.concatenate([kgen.run(name, part) for part in parts])
    assert np.isnan(y).all(axis=1).tolist() == [False, True, True, True, True, False]
    assert not np.isnan(y[[0, 5]]).any()
    np.testing.assert_allclose(y[0], np.exp([-inf, -2, -1, 0]) / np.exp([-2, -1, 0]).sum(), 2e-6)
    np.testing.assert_array_equal(y[5], np.full(4, 0.25, np.float32))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0,)])
@pytest.mark.parametrize("name", ["v1", "v7", "t1", "cpu"])
def test_empty_inputs_give_empty_outputs(name: str, shape: tuple[int, ...]) -> None:
    assert kgen.run(name, np.empty(shape, np.float32)).shape == shape


@pytest.mark.parametrize("name", VERSIONS)
def test_a_vector_is_one_row(name: str) -> None:
    cols = 257 if problems_for(VERSIONS[name].spec, 1, 1000) else 1000
    x = make("uniform", 1, cols)[0]
    assert judge(kgen.run(name, x)[None], x[None], Criterion(1000)).ok


def test_any_strides() -> None:
    x = make("uniform", 8, 66)
    for view in (x[::2], x[:, ::3], x.T, np.asfortranarray(x), x[:, 1:]):
        expected = kgen.run("v5", np.ascontiguousarray(view))
        np.testing.assert_array_equal(kgen.run("v5", view), expected)


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        (
            np.zeros((2, 2)),
            "the input is float64, and the kernel takes float32: convert the input, or use dtype=float64",
        ),
        (np.zeros((2, 2, 2), np.float32), "the input has 3 dimensions"),
        (np.zeros((), np.float32), "the input has 0 dimensions"),
        ([[1.0, 2.0]], "the input is a list"),
    ],
)
def test_unsuitable_arrays(x: np.ndarray, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        kgen.run("v5", x)


def test_a_row_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="covers 1027 columns; cols=1028 needs items>=2"):
        kgen.run("v7:items=1", make("uniform", 1, 1028))


def test_boundary_shapes_stand_at_the_limits() -> None:
    shapes = boundary_shapes(checked("v7:items=1"))
    assert {255, 256, 257, 1023, 1024, 1025, 1026, 1027} <= {cols for _, cols in shapes}
    assert max(cols for _, cols in shapes) == 1027
    assert (1025, 257) in shapes


@pytest.mark.parametrize("rows", [1, 4, 5])
def test_where_rows_are_few_every_row_of_an_input_has_its_turn(rows: int) -> None:
    shapes = range(2 * ROWS_PER_INPUT * len(ALL_INPUTS))
    turns = [_in_turn(ALL_INPUTS, rows, number) for number in shapes]
    seen = {(name, skipped) for used, skipped in turns for name in used[:rows]}
    assert len(seen) == ROWS_PER_INPUT * len(ALL_INPUTS)


def test_rows_that_are_left_out_are_the_first() -> None:
    whole, rest = (mixed_rows(("huge",), 3 - skipped, 9, skipped=skipped) for skipped in (0, 1))
    np.testing.assert_array_equal(rest, make("huge", 3, 9)[1:])
    np.testing.assert_array_equal(whole, make("huge", 3, 9))
