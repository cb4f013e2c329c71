"""A sweep of shapes alone tries few candidates, of all kinds, those first that should be fast."""

from __future__ import annotations

import pytest

from kgen.errors import UsageError
from kgen.specs.rules import problems, problems_for
from kgen.specs.types import find_types, types_of
from kgen.specs.variants import parse
from kgen.sweep.likely import BUDGET_S, LEAST, MOST, likeliest, likely_spaces, ranked
from kgen.sweep.plan import Plan, plan
from kgen.sweep.point import Point

SHAPES = [
    *((1, 1), (3, 5), (262144, 32), (65536, 127), (8192, 4097), (1, 32000), (256, 65536)),
    *((1, 1048576), (1, 1048575), (262144, 32768), (4096, 1048576)),
]


def planned(*shapes: tuple[int, int]) -> Plan:
    return plan(*likely_spaces(shapes))


def order(rows: int, cols: int) -> list[Point]:
    return ranked(planned((rows, cols)).points)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_has_candidates_that_can_run_and_not_too_many(shape: tuple[int, int]) -> None:
    points = likeliest(planned(shape), lambda point: 0.3).points
    assert min(LEAST, 10) <= len(points) <= MOST
    assert len({point.resolved for point in points}) == len(points)
    for point in points:
        assert parse(point.variant) == point.spec
        assert not problems(point.resolved) and not problems_for(point.resolved, *shape)


@pytest.mark.parametrize(
    ("seconds", "number"), [(0.001, MOST), (BUDGET_S / 40, 40), (BUDGET_S, LEAST)]
)
def test_what_measuring_takes_decides_how_many(seconds: float, number: int) -> None:
    every = planned((256, 65536))
    chosen = likeliest(every, lambda point: seconds)
    assert len(chosen.points) == min(number, len(order(256, 65536)))
    assert chosen.unlikely == len(every.points) - len(chosen.points)
    assert [it.spec for it in chosen.points] == [
        it.spec for it in order(256, 65536)[: len(chosen.points)]
    ]


def test_short_rows_are_tried_several_at_once() -> None:
    short, long = (
        {point.spec.rows_at_once for point in likeliest(planned(shape), lambda _: 1.0).points}
        for shape in ((262144, 32), (256, 65536))
    )
    assert short == {1, 2, 4} and long == {1}


def test_every_shape_has_its_own() -> None:
    chosen = likeliest(planned((1, 32000), (65536, 127)), lambda point: 1.0).points
    shapes = [(point.rows, point.cols) for point in chosen]
    assert shapes == sorted(shapes) and shapes.count((1, 32000)) == shapes.count((65536, 127)) == 60


def test_what_is_much_alike_does_not_fill_the_first_places() -> None:
    first = order(128, 16384)[:LEAST]
    assert len({(it.spec.version, it.spec.blocks_per_row) for it in first}) >= 3


def test_rows_off_a_vector_boundary_are_shifted_unless_they_are_read_again() -> None:
    odd = [it.spec for it in order(8192, 4097) if it.spec.in_registers and it.spec.vectorises]
    assert odd and all(spec.unaligned.is_shifted for spec in odd)


def test_the_bound_on_registers_is_the_one_that_they_leave_room_for() -> None:
    """65 values a thread and the 16 that a thread has beside are 5 blocks of 128 threads."""
    bound = [
        it.spec.min_blocks_per_sm
        for it in order(256, 65536)
        if (it.spec.version, it.spec.blocks_per_row, it.spec.threads_per_block) == ("v13", 8, 128)
        and not it.spec.row_loop.repeats
    ]
    assert sorted(bound, key=str) == [5, None]


def test_a_loop_over_rows_has_rows_to_go_on_to() -> None:
    for point in order(16, 65536):
        if point.spec.row_loop.repeats:
            assert point.spec.grid_blocks < 16 * point.spec.blocks_per_row


@pytest.mark.parametrize(
    "types", [("bfloat16",), ("bfloat16", "float32"), ("float32", "float16"), ("float64",)]
)
@pytest.mark.parametrize("shape", [(262144, 32), (65536, 127), (8192, 4097), (1, 1048575)])
def test_a_type_has_candidates_of_that_type(types: tuple[str, ...], shape: tuple[int, int]) -> None:
    pair = find_types(*types)
    points = likeliest(plan(*likely_spaces([shape], types=pair)), lambda point: 0.3).points
    assert LEAST <= len(points) <= MOST
    for point in points:
        assert types_of(parse(point.variant)) == pair and parse(point.variant) == point.spec
        assert not problems(point.resolved) and not problems_for(point.resolved, *shape)


@pytest.mark.parametrize(
    ("types", "sizes"),
    [
        (("float32",), {4}),
        (("bfloat16",), {4, 8}),
        (("bfloat16", "float32"), {4, 8}),
        (("float64",), {2}),
    ],
)
def test_accesses_of_narrow_types_have_16_bytes_and_8(
    types: tuple[str, ...], sizes: set[int]
) -> None:
    points = plan(*likely_spaces([(16, 16384)], types=find_types(*types))).points
    kept = [it.spec for it in points if it.spec.in_registers]
    for version in ("v7", "v11", "v13", "v14"):
        assert {spec.vec_size for spec in kept if spec.version == version} == sizes, version


@pytest.mark.parametrize(
    ("cols", "ways"),
    [
        (4096, {"scalar_groups"}),
        (4100, {"scalar_row", "shift"}),  # whole vectors of 4, and not of 8
        (4097, {"shift"}),
    ],
)
def test_rows_of_narrow_types_are_shifted_where_no_vector_fits(cols: int, ways: set[str]) -> None:
    points = plan(*likely_spaces([(512, cols)], types=find_types("bfloat16"))).points
    assert {str(it.spec.unaligned) for it in points if it.spec.version == "v7"} == ways


def test_odd_short_rows_come_in_chunks_where_types_are_alike() -> None:
    alike, mixed = (
        {it.spec.in_chunks for it in plan(*likely_spaces([(65536, 127)], types=pair)).points}
        for pair in (find_types("float16"), find_types("float16", "float32"))
    )
    assert alike == {False, True} and mixed == {False}


def test_a_shape_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="a sweep needs whole numbers from 1 on"):
        likely_spaces([(0, 5)])
