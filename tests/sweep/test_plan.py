"""A plan keeps just what can run, once, and says what left the rest out."""

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgen.errors import UsageError
from kgen.specs.axes import parse_value
from kgen.specs.fields import AXES, short_name
from kgen.specs.rules import RULES, Problem, Rule, problems, problems_for, refusals_for
from kgen.specs.spec import Spec
from kgen.specs.types import Types, find_types, types_of
from kgen.specs.variants import apply
from kgen.specs.variants import settings as read_variant
from kgen.sweep import plan as plan_module
from kgen.sweep.plan import plan
from kgen.sweep.point import Point
from kgen.sweep.space import Space, everything
from tests.strategies import CHOICES

VARIANTS = ("v1", "v7", "v6_fetch", "t1", "v5:cache=registers", "v3:exp=exp2", "cpu")
SHAPES = [(1, 3), (5, 257), (2, 65536)]


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    """Up to two variants and four axes of up to three values, of one type, valid or not."""
    free = sorted(set(AXES) - {"cache", "exp"})
    swept = draw(st.lists(st.sampled_from(free), max_size=4, unique=True))
    axes = {
        axis: draw(
            st.lists(
                CHOICES[axis], min_size=1, max_size=1 if axis in Types._fields else 3, unique=True
            )
        )
        for axis in swept
    }
    variants = draw(st.lists(st.sampled_from(VARIANTS), min_size=1, max_size=2, unique=True))
    rows, cols = zip(*draw(st.lists(st.sampled_from(SHAPES), min_size=1, unique=True)), strict=True)
    return Space.make(variants, rows, cols, axes)


def one_by_one(space: Space) -> tuple[dict[tuple[Any, ...], Point], int]:
    """Plan without any shortcut: kernels on shapes -> first point, and how many can run."""
    kept: dict[tuple[Any, ...], Point] = {}
    valid = 0
    for variant in space.variants:
        base, fixed = read_variant(variant)
        for values in itertools.product(*space.axes.values()):
            spec = apply(base, fixed | dict(zip(space.axes, values, strict=True)))
            for rows, cols in space.shapes:
                if problems(spec) or problems_for(spec, rows, cols):
                    continue
                valid += 1
                exact = spec.resolve(cols).replace(version="")
                kept.setdefault((exact, rows, cols), Point(spec, rows, cols))
    return kept, valid


@settings(max_examples=200, deadline=None)
@given(spaces())
def test_the_plan_is_what_asking_one_by_one_gives(space: Space) -> None:
    kept, valid = one_by_one(space)
    made = plan(space)
    found = {
        (point.resolved.replace(version=""), point.rows, point.cols): point for point in made.points
    }
    assert found.keys() == kept.keys() and len(found) == len(made.points)
    versions = Counter(point.spec.version for point in made.points)
    assert versions == Counter(point.spec.version for point in kept.values())
    assert (made.merged, made.filtered) == (valid - len(kept), 0)
    assert made.combinations == sum(made.refused.values()) + valid


def test_points_know_their_kernel_and_their_name() -> None:
    (point,) = plan(Space.make(["v7"], [8], [8192], {"threads": [512], "vec": [4]})).points
    assert (
        point.variant == "v7:vec=4,threads=512"
    )  # what was swept is named, as in the version or not
    assert point.spec.items_per_thread is None and point.resolved.items_per_thread == 4
    assert (point.rows, point.cols) == (8, 8192)


def test_the_same_kernel_stays_once_and_is_named_as_it_was_first() -> None:
    made = plan(Space.make(["v4_opt", "v5"], axes={"merge": ["paired"]}))
    assert [point.variant for point in made.points] == ["v4_opt:merge=paired"]
    assert made.merged == 1


def test_auto_items_are_the_same_as_their_number_where_they_are() -> None:
    made = plan(Space.make(["v7"], [8], [4096, 8192], {"items": ["auto", 4, 8]}))
    assert [(point.variant, point.cols) for point in made.points] == [
        ("v7:items=auto", 4096),
        ("v7:items=auto", 8192),
        ("v7:items=8", 4096),
    ]
    assert made.merged == 2
    assert made.refused == {"row fits the registers": 1}


def test_what_left_points_out_is_counted_by_rule() -> None:
    axes = {"threads": [128, 96, 2048], "static_cols": ["auto", 257], "normalize": ["divide"]}
    made = plan(Space.make(["v1"], [8], [257, 4096], axes, "cols < 1000"))
    assert made.refused == {
        "threads fit a block": 4,
        "reduction connects the row": 4,
        "static cols are the cols": 1,
    }
    assert (made.combinations, made.filtered, len(made.points)) == (12, 1, 2)


def test_a_variant_that_a_rule_refuses_leaves_out_everything() -> None:
    made = plan(Space.make(["v5:items=4"], axes={"threads": [64, 128], "exp": ["expf", "exp2"]}))
    assert made.points == [] and made.refused == {"items need a register cache": 4}


def test_nothing_is_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a rule or a shape does not read must not multiply how often it is asked."""
    rules, shapes = Counter[str](), Counter[str]()

    def counted(rule: Rule) -> Rule:
        def check(spec: Spec) -> Iterator[Problem]:
            rules[rule.name] += 1
            return rule.check(spec)

        return Rule(check, rule.reads)

    def refusals(spec: Spec, rows: int, cols: int) -> Iterator[Any]:
        shapes[f"{rows} x {cols}"] += 1
        return refusals_for(spec, rows, cols)

    monkeypatch.setattr(plan_module, "RULES", list(map(counted, RULES)))
    monkeypatch.setattr(plan_module, "refusals_for", refusals)
    axes = {"threads": [64, 128], "exp": ["expf", "exp2"], "normalize": ["divide", "reciprocal"]}
    made = plan(Space.make(["v7"], [8], [257, 4096], {**axes, "cache": ["none", "registers"]}))
    assert len(made.points) == 32 and shapes == {"8 x 257": 4, "8 x 4096": 4}
    assert rules["reduction connects the row"] == 2 and rules["kernels share no registers"] == 2


def test_a_short_word_gives_way_to_the_axis_itself() -> None:
    axes = {"row_map": ["warp", "block"], "threads_per_row": [16]}
    made = plan(Space.make(["v8"], axes=axes))
    assert {point.spec.row_threads for point in made.points} == {16} and made.merged == 1


def test_a_space_without_a_variant() -> None:
    with pytest.raises(UsageError, match="no variant; name some"):
        plan(Space.make([]))


def test_too_many_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "MAX_POINTS", 3)
    with pytest.raises(UsageError, match="more than 3 points; give its axes fewer values"):
        plan(Space.make(["v1"], [1, 2], [1, 2]))


def test_everything_has_all_choices_and_the_versions_by_name() -> None:
    versions, combinations = everything([4], [257])
    assert combinations.axes.keys() == AXES.keys() - set(Types._fields)
    assert len(combinations.axes["cache"]) == 10 and 1024 in combinations.axes["threads_per_block"]
    small = {axis: values[:1] for axis, values in combinations.axes.items()}
    made = plan(versions, Space(("v1",), (4,), (257,), small, "cols > 1"))
    assert [point.variant for point in made.points][: len(versions.variants)] == [
        *versions.variants
    ]


def test_everything_of_a_type_is_of_that_type() -> None:
    versions, combinations = everything([4], [256], types={"dtype": ["bfloat16"]})
    small = {axis: values[:1] for axis, values in combinations.axes.items()}
    points = plan(versions, Space(("v1",), (4,), (256,), small)).points
    assert len(points) > 10
    assert {types_of(point.spec) for point in points} == {find_types("bfloat16")}


@pytest.mark.parametrize(
    "space",
    [
        Space.make(["v7"], axes={"dtype": ["float16", "bfloat16"]}),
        Space.make(["v7", "v8:dtype=bfloat16"]),
        Space.make(["v7"], axes={"out_dtype": ["float16", "float32"]}),
    ],
)
def test_what_differs_in_type_is_not_swept_together(space: Space) -> None:
    with pytest.raises(UsageError, match=r"^v7.* of .*, v[78]:.* of .*: what differs in type is"):
        plan(space)


def test_a_condition_may_leave_one_type() -> None:
    axes = {"dtype": ["float16", "bfloat16"]}
    (point,) = plan(Space.make(["v7"], axes=axes, where="dtype == 'float16'")).points
    assert types_of(point.spec) == find_types("float16")


def test_named_values_are_read_as_in_a_variant() -> None:
    space = Space.make(["v1"], axes={"cache": ["registers"], "prefetch": [False]})
    assert space.axes["cache"] == (parse_value("cache", "inputs_registers"),)
    assert [short_name(axis) for axis in space.axes] == ["cache", "prefetch"]
    assert isinstance(plan(space).points[0].spec, Spec)
