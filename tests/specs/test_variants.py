"""Variants are read and written the same way, and axes that were not named follow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgen.errors import UsageError
from kgen.specs.axes import listed_values, swept_values
from kgen.specs.fields import AXES, SWEPT_NUMBERS
from kgen.specs.follow import LEADING_AXES, MOVING_AXES, follow
from kgen.specs.rules import problems
from kgen.specs.spec import Spec
from kgen.specs.variants import apply, checked, parse, spelling, stem
from kgen.specs.versions import VERSIONS
from tests.strategies import CHOICES, specs


@given(specs())
def test_spelling_reads_back(spec: Spec) -> None:
    assert parse(spelling(spec)) == spec


@pytest.mark.parametrize("name", VERSIONS)
def test_a_version_is_spelt_by_its_name(name: str) -> None:
    assert spelling(VERSIONS[name].spec) == name
    assert stem(name) == f"softmax_{name}"


def test_stems_are_symbols() -> None:
    assert stem("v7:items=4,threads=512") == "softmax_v7_items4_threads512"
    assert stem("v8:op=log_softmax,threads_per_row=8") == "log_softmax_v8_threads_per_row8"
    assert stem("v5:exp=__expf") == "softmax_v5_exp_expf"
    assert (
        stem("t1:unaligned=scalar_groups,tile=2048,threads=256,min_blocks=2,static_cols=100000")
        == "softmax_t1_unaligned_scalar_groups_tile2048_threads256_min_blocks2_static_cols100000"
    )


def test_only_what_nobody_reads_ends_in_a_digest() -> None:
    axes = [
        f"{axis}=scalar_groups" for axis in ("unaligned", "cache", "topology", "update", "merge")
    ]
    names = {stem(f"v7:{','.join(axes)},threads={threads}") for threads in (64, 128)}
    assert len(names) == 2 and max(map(len, names)) < 30


@pytest.mark.parametrize(
    ("variant", "named"),
    [
        ("v10:rows_at_once=2", {"cache": "none"}),
        ("v10:rows_at_once=2", {"threads_per_row": 64}),
        ("v10:rows_at_once=2", {"row_split": "cluster"}),
        ("v13:row_order=contiguous", {"row_split": "none"}),
        ("v13:row_order=contiguous", {"cache": "none"}),
        ("v7:stores=streaming,loads=streaming", {"cache": "none"}),
        ("v10:stores=streaming", {"row_io": "chunk"}),
    ],
)
def test_what_belongs_to_rows_in_registers_goes_with_them(
    variant: str, named: dict[str, object]
) -> None:
    base = checked(variant)
    assert problems(base.replace(**named)) != []
    assert problems(apply(base, named)) == []


def test_named_axes_bring_others_along() -> None:
    assert parse("v8:vec=4").vec_scans == "both"
    assert parse("v7:vec=1").vec_scans == "none"
    assert parse("k1:update=online").cache == "none"
    assert parse("v3:update=online").cache == "inputs_registers"
    assert parse("v5:row_map=warp").topology == "warp"
    assert parse("v5:row_map=thread").merge == "separate"
    assert parse("v7:cache=none").items_per_thread is None
    assert parse("v6_fetch:cache=registers").prefetch is False
    assert parse("k1:row_map=host").threads_per_block == 1
    assert parse("v8:row_loop=grid_stride").threads_per_row == 32
    assert parse("v8:row_split=tiles").threads_per_row is None
    assert parse("v9:row_split=tiles").row_loop == "once"
    assert parse("v13:next_row=async").row_loop == "grid_stride"
    assert parse("v14:next_row=async").row_loop == "once"
    assert parse("v3:op=log_softmax").cache == "inputs_registers"
    assert parse("k1:op=log_softmax").normalize == "reciprocal"
    assert parse("v7:blocks_per_row=4").row_split == "cluster"
    assert parse("v7:blocks_per_row=4").topology == "all_warps"
    assert parse("k1:blocks_per_row=2").threads_per_row is None
    assert parse("v14:row_split=cluster").blocks_per_row == 8
    assert parse("v13:blocks_per_row=1").row_split == "none"
    assert parse("v7:merge=by_warp").topology == "all_warps"
    assert parse("v11:merge=paired").topology == "two_level"
    assert parse("v11:cache=none").unaligned == "scalar_row"


def test_a_named_axis_never_moves() -> None:
    assert parse("v8:vec=4,vec_scans=first").vec_scans == "first"
    assert parse("v5:row_map=warp,topology=two_level").topology == "two_level"
    assert parse("v5:items=4,cache=none").items_per_thread == 4


@given(st.data())
def test_what_follows_follows_the_leading_axes(data: st.DataObject) -> None:
    base = VERSIONS[data.draw(st.sampled_from(sorted(VERSIONS)))].spec
    named = data.draw(st.lists(st.sampled_from(sorted(AXES)), max_size=6, unique=True))
    changes = {axis: data.draw(CHOICES[axis]) for axis in named}
    spec = apply(base, changes)
    leading = {axis: value for axis, value in changes.items() if axis in LEADING_AXES}
    others = {axis: value for axis, value in changes.items() if axis not in LEADING_AXES}
    assert spec == follow(base.replace(**leading), base, frozenset(changes)).replace(**others)
    for axis in AXES.keys() - MOVING_AXES - changes.keys():
        assert getattr(spec, axis) == getattr(base, axis)


def test_sweeps_try_values_on_every_axis() -> None:
    assert {axis for axis in AXES if not listed_values(axis)} == SWEPT_NUMBERS.keys()
    assert listed_values("trip") == swept_values("trip") == ("static", "runtime")
    assert swept_values("vec_size") == (1, 2, 4, 8)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("v77", "there is no version 'v77'; did you mean 'v7'"),
        ("", "there is no version ''; a variant is written VERSION:AXIS=VALUE"),
        (":items=4", "there is no version ''; a variant is written VERSION:AXIS=VALUE"),
        ("items=4", "there is no version 'items=4'; a variant is written VERSION:AXIS=VALUE"),
        ("v7,items=4", "there is no version 'v7,items=4'; .*, such as v7:items=4,threads=512"),
        ("V7", "there is no version 'V7'; did you mean 'v7'\\?$"),
        ("mine.txt", "no version 'mine.txt'; a file of source is named .cu or .cpp$"),
        ("out/v7", "no version 'out/v7'; a file of source is named .cu or .cpp$"),
        ("V4-OPT", "there is no version 'V4-OPT'; did you mean 'v4_opt'"),
        ("my.cu:vec=4", "my.cu is a file, whose header fixes its axes; leave vec=4 out"),
        ("v7:itmes=4", "there is no axis 'itmes'; did you mean 'items'"),
        ("v7:colour=4", "there is no axis 'colour'; known are .*, normalize, static_cols$"),
        ("v7:items", "'items' sets nothing; write items=VALUE: a number or auto"),
        ("v7:exp=", "'exp=' sets nothing; write exp=VALUE: expf __expf exp2"),
        ("v7:exp=EXP2", "exp=EXP2 is not a choice; did you mean 'exp2'"),
        ("v7:items=", "'items=' sets nothing"),
        ("v7:items=four", "items=four: a whole number is needed, of at most 12 digits, or auto$"),
        ("v7:threads=auto", "threads=auto: a whole number is needed, of at most 12 digits$"),
        ("v7:items=99999999999999", "a whole number is needed"),
        ("v7:cache=regs", "cache=regs is not a choice; did you mean|cache=regs is not a choice"),
        ("v7:prefetch=maybe", "prefetch=maybe is not a choice; known are true, false"),
        ("v7:items=4,items_per_thread=8", "sets items twice; name it once"),
        ("v7:items=\u0664", "a whole number is needed"),
        ("v7:version=v8", "there is no axis 'version'"),
    ],
)
def test_misspelt_variants(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        parse(text)
