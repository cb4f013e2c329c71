"""Variants are read and written the same way, and axes that were not named follow."""

import pytest
from hypothesis import given

from kgen.errors import UsageError
from kgen.specs.spec import Cache, Merge, Spec, Topology, VecScans
from kgen.specs.variants import parse, spelling, stem
from kgen.specs.versions import VERSIONS
from tests.strategies import specs


@given(specs())
def test_spelling_reads_back(spec: Spec) -> None:
    assert parse(spelling(spec)) == spec


@pytest.mark.parametrize("name", VERSIONS)
def test_a_version_is_spelt_by_its_name(name: str) -> None:
    assert spelling(VERSIONS[name].spec) == name
    assert stem(VERSIONS[name].spec) == f"softmax_{name}"


def test_stems_are_symbols() -> None:
    assert stem(parse("v7:items=4,threads=512")) == "softmax_v7_items4_threads512"
    assert stem(parse("v5:exp=__expf")) == "softmax_v5_exp_expf"


def test_named_axes_bring_others_along() -> None:
    assert parse("v8:vec=4").vec_scans is VecScans.BOTH
    assert parse("v7:vec=1").vec_scans is VecScans.NONE
    assert parse("k1:update=online").cache is Cache.NONE
    assert parse("v3:update=online").cache is Cache.INPUTS_REGISTERS
    assert parse("v5:row_map=warp").topology is Topology.WARP
    assert parse("v5:row_map=thread").merge is Merge.SEPARATE
    assert parse("v7:cache=none").items_per_thread is None
    assert parse("v6_fetch:cache=registers").prefetch is False
    assert parse("k1:row_map=host").threads_per_block == 1


def test_a_named_axis_never_moves() -> None:
    assert parse("v8:vec=4,vec_scans=first").vec_scans is VecScans.FIRST
    assert parse("v5:row_map=warp,topology=two_level").topology is Topology.TWO_LEVEL
    assert parse("v5:items=4,cache=none").items_per_thread == 4


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("v77", "there is no version 'v77'; did you mean 'v7'"),
        ("", "there is no version ''"),
        ("v7:itmes=4", "there is no axis 'itmes'; did you mean 'items'"),
        ("v7:items", "'items' sets nothing; write items=VALUE"),
        ("v7:items=", "'items=' sets nothing"),
        ("v7:items=four", "items_per_thread=four: a whole number is needed"),
        ("v7:threads=auto", "threads_per_block=auto: a whole number is needed"),
        ("v7:items=99999999999999", "a whole number is needed"),
        ("v7:cache=regs", "cache=regs is not a choice; did you mean|cache=regs is not a choice"),
        ("v7:prefetch=maybe", "prefetch=maybe is not a choice; known are true, false"),
        ("v7:items=4,items_per_thread=8", "sets items twice"),
        ("v7:items=\u0664", "a whole number is needed"),
        ("v7:version=v8", "there is no axis 'version'"),
    ],
)
def test_misspelt_variants(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        parse(text)
