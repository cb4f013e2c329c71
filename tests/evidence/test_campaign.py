"""Mutation testing as a product: what is made, what catches it, what is explained."""

import json
from pathlib import Path

import pytest

from kgen.cli.mutate import as_json
from kgen.errors import MissingTool
from kgen.evidence.mutation.campaign import campaign, explanations
from kgen.evidence.mutation.machine_code import same_machine_code
from kgen.evidence.mutation.mistakes import MISTAKES, mutants
from kgen.sources.render import render
from kgen.specs.variants import checked
from kgen.specs.versions import VERSIONS
from kgen.toolchain import find_nvcc

RECORDED = Path(__file__).parents[2] / "bench" / "results" / "mutants.json"


def all_mutants(variant: str):  # type: ignore[no-untyped-def]
    return list(mutants(render(checked(variant).resolve(1027))))


@pytest.mark.parametrize("variant", ["v8", "t1"])
def test_at_least_98_percent_of_the_real_mistakes_are_caught(variant: str) -> None:
    result = as_json(list(campaign([checked(variant)])))
    assert result["mutants"] == len(all_mutants(variant)) > 30
    real = result["mutants"] - result["equivalent"]
    assert result["caught"] >= 0.98 * real
    assert result["caught"] + result["equivalent"] + result["survivors"] == result["mutants"]
    assert {fate["caught_by"] for fate in result["fates"]} >= {"result", "fault"}


def test_the_recorded_campaign_is_of_todays_mutants_and_its_survivors_are_explained() -> None:
    recorded = json.loads(RECORDED.read_text())
    fates = {(fate["variant"], fate["mutant"]): fate for fate in recorded["fates"]}
    made = {(name, mutant.key) for name in VERSIONS for mutant in all_mutants(name)}
    assert set(fates) == made
    passed = {key for key, fate in fates.items() if not fate["caught_by"]}
    assert passed == {*explanations("equivalent"), *explanations("survivor")}
    real = recorded["mutants"] - recorded["equivalent"]
    assert recorded["caught"] >= 0.98 * real


def test_explanations_are_of_mutants_that_are_made() -> None:
    for kind in ("equivalent", "survivor"):
        for variant, key in explanations(kind):
            assert key in {mutant.key for mutant in all_mutants(variant)}


def test_at_most_a_tenth_is_equivalent_by_a_written_reason() -> None:
    total = sum(len(all_mutants(name)) for name in VERSIONS)
    assert len(explanations("equivalent")) <= 0.1 * total


def test_a_mutant_changes_one_place_and_no_comment() -> None:
    original = render(checked("v5")).text.splitlines()
    made = all_mutants("v5")
    assert len({mutant.source.text for mutant in made}) == len(made)
    assert len({mutant.key for mutant in made}) == len(made)
    for mutant in made:
        text = mutant.source.text.splitlines()
        pairs = enumerate(zip(original, text, strict=True), start=1)
        assert [line for line, (old, new) in pairs if old != new] == [mutant.line]
        assert not original[mutant.line - 1].lstrip().startswith("//")


def test_every_mistake_can_be_made_somewhere() -> None:
    variants = [*VERSIONS, "v3:merge=paired", "t1:update=online"]
    made = {mutant.mistake for variant in variants for mutant in all_mutants(variant)}
    assert made == {mistake.name for mistake in MISTAKES}


def test_machine_code_tells_sources_apart() -> None:
    try:
        find_nvcc()
    except MissingTool as missing:
        pytest.skip(str(missing))
    v1 = render(checked("v1"))
    assert same_machine_code(v1, v1)
    assert not same_machine_code(v1, render(checked("v1:normalize=divide")))
