"""Mutation testing as a product: what is made, what catches it, what is explained."""

import functools
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from kgen.cli.mutate import as_json
from kgen.errors import MissingTool
from kgen.evidence.mutation.campaign import (
    SAME_CODE,
    campaign,
    explanation,
    longest,
    written_reasons,
)
from kgen.evidence.mutation.machine_code import same_machine_code
from kgen.evidence.mutation.mistakes import MISTAKES, Mutant, mutants
from kgen.sources.render import render
from kgen.sources.source import Source
from kgen.specs.variants import checked
from kgen.specs.versions import VERSIONS
from kgen.toolchain import find_nvcc

pytestmark = pytest.mark.slow

KINDS = ("equivalent", "survivor")
RECORDED = Path(__file__).parents[2] / "bench" / "results" / "mutants.json"


# Variants whose kernels have what no version's has.
OTHERS = [
    "v7:stores=streaming,loads=streaming,items=1",
    "v13:row_split=cluster",
    "v13:row_loop=grid_stride,grid=16",
    "v13:row_order=contiguous",
    "v13:row_order=contiguous,row_loop=grid_stride,grid=16,next_row=bulk",
    "v13:blocks_per_row=16",
    "k2:vec=4",
    "k3:vec=4",
    "v1:threads_per_row=64,vec=4",
    "v2:threads_per_row=32,vec=4",
    "v3:merge=paired",
    "v3:op=log_softmax",
    "v5:row_map=thread",
    "v5:threads_per_row=64,row_loop=grid_stride,exp=exp2",
    "v8:threads_per_row=8,vec=4,cache=registers",
    "v10:rows_at_once=2",
    "v10:rows_at_once=4,threads_per_row=1,row_loop=grid_stride,items=2",
    "v12:threads_per_row=1,cache=exps_registers,items=16,row_loop=grid_stride",
    "v12:row_io=chunk_async",
    "v12:row_io=chunk_bulk,row_loop=grid_stride",
    "v11:cache=exps_shared_async,threads=64",
    "v11:cache=exps_shared_bulk,row_loop=grid_stride,threads=64",
    "v13:cache=inputs_shared_bulk,blocks_per_row=4,threads=64",
    "v8:cache=inputs_shared_bulk,vec=4",
    "v14:cache=exps_shared_async,blocks_per_row=2,threads=64",
    "v13:row_loop=grid_stride,next_row=async,blocks_per_row=2,threads=64,grid=4",
    "v11:row_loop=grid_stride,next_row=bulk,threads=64,grid=3",
    "v11:row_loop=grid_stride,next_row=registers,threads=64,grid=3",
    "t1:update=online",
    "v2:dtype=float64",
    "v5:dtype=float64",
    "t2:dtype=float64",
    "v3:merge=paired,dtype=float64",
    "v7:dtype=float16",
    "v3:dtype=float16",
    "v10:rows_at_once=2,update=three_pass,dtype=float16",
    "v3:dtype=bfloat16",
]


@functools.cache
def source_of(variant: str) -> Source:
    spec = checked(variant)
    return render(spec.resolve(longest(spec)))


def all_mutants(variant: str) -> list[Mutant]:
    return list(mutants(source_of(variant)))


@pytest.mark.parametrize("variant", ["v8", "c1"])
def test_at_least_98_percent_of_the_real_mistakes_are_caught(variant: str) -> None:
    result = as_json(list(campaign([checked(variant)])))
    assert result["mutants"] == len(all_mutants(variant)) > 30
    real = result["mutants"] - result["equivalent"]
    assert result["caught"] >= 0.98 * real
    assert result["caught"] + result["equivalent"] + result["survivors"] == result["mutants"]
    assert {result["caught_by"] for result in result["results"]} >= {"result", "fault"}


def test_the_recorded_campaign_is_of_todays_mutants_and_its_survivors_are_explained() -> None:
    recorded = json.loads(RECORDED.read_text())
    results = {(result["variant"], result["mutant"]): result for result in recorded["results"]}
    made = {(name, mutant.key) for name in VERSIONS for mutant in all_mutants(name)}
    assert set(results) == made
    for (name, key), result in results.items():
        equivalent, survivor = (explanation(kind, checked(name), key) for kind in KINDS)
        if result["caught_by"]:  # then no explanation is true
            assert (equivalent, survivor) == ("", "")
        else:
            assert result["equivalent"] in (equivalent, SAME_CODE)
            assert result["equivalent"] or survivor
    real = recorded["mutants"] - recorded["equivalent"]
    assert recorded["caught"] >= 0.98 * real


def test_explanations_are_of_mutants_that_are_made() -> None:
    variants = [*VERSIONS, *OTHERS]
    made = {variant: {mutant.key for mutant in all_mutants(variant)} for variant in variants}
    for reason in [reason for kind in KINDS for reason in written_reasons()[kind]]:
        meant = [made[variant] for variant in variants if reason.holds_for(checked(variant))]
        assert set(reason.mutants) <= set().union(*meant)


def test_at_most_one_in_30_is_equivalent_by_a_written_reason() -> None:
    keys = [(checked(name), mutant.key) for name in VERSIONS for mutant in all_mutants(name)]
    assert sum(bool(explanation("equivalent", *of)) for of in keys) <= len(keys) / 30


def test_a_mutant_changes_one_place_and_no_comment() -> None:
    original = source_of("v5").text.splitlines()
    made = all_mutants("v5")
    assert len({mutant.source.text for mutant in made}) == len(made)
    assert len({mutant.key for mutant in made}) == len(made)
    for mutant in made:
        text = mutant.source.text.splitlines()
        pairs = enumerate(zip(original, text, strict=True), start=1)
        assert [line for line, (old, new) in pairs if old != new] == [mutant.line]
        assert not original[mutant.line - 1].lstrip().startswith("//")


def test_every_mistake_can_be_made_somewhere() -> None:
    texts = [source_of(variant).text for variant in (*VERSIONS, *OTHERS)]
    assert [m for m in MISTAKES if not any(re.search(m.pattern, text) for text in texts)] == []


@pytest.mark.parametrize("word", ["float16", "bfloat16", "float64"])
def test_what_float32_can_have_wrong_every_type_can(word: str) -> None:
    for name in VERSIONS:
        ours, others = (
            Counter(mutant.mistake for mutant in all_mutants(variant))
            for variant in (name, f"{name}:dtype={word}")
        )
        # A double starts at a lowest number of its own.
        only_floats = {"maximum starts at half's lowest"} if word == "float64" else set()
        assert set(ours - others) <= only_floats, name


def test_a_mistake_is_made_where_there_is_what_it_calls() -> None:
    kept = "sum kept in half"
    assert kept in {mutant.mistake for mutant in all_mutants("v7:dtype=float16")}
    assert kept not in {mutant.mistake for mutant in all_mutants("v7:dtype=bfloat16")}


def test_machine_code_tells_sources_apart() -> None:
    try:
        find_nvcc()
    except MissingTool as missing:
        pytest.skip(str(missing))
    v1 = render(checked("v1"))
    assert same_machine_code(v1, v1)
    assert not same_machine_code(v1, render(checked("v1:normalize=divide")))
