"""list, show, explain and doctor: what they print, as words and as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from kgen.specs.declared import RECORDS, choices
from kgen.specs.fields import AXES, short_name
from kgen.specs.notes import notes
from kgen.specs.variants import parse
from kgen.specs.versions import SERIES, VERSIONS
from tests.cli.conftest import Ended

Call = Callable[..., Ended]


def test_list_says_what_every_version_is_and_what_is_set_on_its_parent(call: Call) -> None:
    listed = call("list")
    assert listed.code == 0 and listed.err == ""
    rows = {words[0]: " ".join(words[1:]) for words in listed.rows() if words}
    assert [name for name in rows if name in VERSIONS] == list(VERSIONS)
    assert rows["v1"] == "3 three passes, tree -"
    assert rows["v6_fetch"] == "2 next vector fetched ahead v6_double: prefetch=true"
    for series, words in SERIES.items():
        assert f"\n{series}: {words}\n" in listed.out


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_belongs_to_a_series(version: str) -> None:
    """It is named there, or lies in a span such as v1 to v9."""
    stem = version.partition("_")[0]
    spans = [re.findall(r"\b([a-z]+)(\d*)(?: to \1(\d+))?", words) for words in SERIES.values()]
    named = [
        [f"{letter}{n}" for letter, first, last in span for n in numbers(first, last)]
        for span in spans
    ]
    assert sum(stem in names for names in named) == 1


def numbers(first: str, last: str) -> list[str]:
    """The numbers of a span such as 1 to 9, as they are written; of one number, itself."""
    return [str(n) for n in range(int(first), int(last) + 1)] if last else [first]


def test_what_list_sets_on_the_parents_makes_the_versions(call: Call) -> None:
    cells = [line.strip().split("  ") for line in call("list").out.splitlines()]
    told = {line[0]: line[-1].strip() for line in cells if line[0] in VERSIONS}
    for version, (parent, colon, settings) in ((v, told[v].partition(": ")) for v in VERSIONS):
        assert parent == (VERSIONS[version].parent or "-")
        if colon:
            made = parse(f"{parent}:{settings}").replace(version=version)
            assert made == VERSIONS[version].spec


def test_list_as_json(call: Call) -> None:
    versions = {entry["name"]: entry for entry in call("list", "--json").json}
    assert list(versions) == list(VERSIONS)
    assert versions["v1"]["parent"] is None and versions["v1"]["changes"] == {}
    v7 = versions["v7"]
    assert v7["what"] == "inputs in registers"
    assert (v7["parent"], v7["scans"]) == ("v6_double", 1)
    assert v7["changes"]["cache"] == ["none", "inputs_registers"]
    assert v7["axes"].keys() == AXES.keys()


def test_show_explains_every_axis_the_launch_and_the_version(call: Call) -> None:
    shown = call("show", "v8", "--rows", 1000, "--cols", 33)
    assert shown.code == 0 and shown.out.startswith("v8: one warp per row, ")
    words = {line[0]: line[1:] for line in shown.rows() if line}
    assert [short_name(axis) for axis in AXES if short_name(axis) not in words] == []
    assert words["topology"] == ["warp", *AXES["topology"].metadata["help"].split()]
    assert words["threads_per_row"][:2] == ["32", "threads"] and words["row_map"][0] == "warp"
    assert words["parent"][:4] == ["v5:", "threads_per_row", "auto", "->"]
    assert "Launches on 1000 x 33" in shown.out
    assert words["softmax_v8"] == ["125", "256", "0", "x,", "y,", "rows,", "cols"]


def test_show_says_what_each_choice_is(call: Call) -> None:
    lines = [" ".join(words) for words in call("show", "t1").rows()]
    told = [f"- {choice} {choice.help}" for axis in RECORDS for choice in choices(axis).values()]
    assert [line for line in told if line not in lines] == []


@pytest.mark.parametrize("variant", ["v9", "v9:exp=exp2", "v2", "cpu", "v10", "v13", "v14"])
def test_show_says_why_before_the_axes(call: Call, variant: str) -> None:
    note = notes()[variant.partition(":")[0]]
    out = call("show", variant).out
    told = [f"Why it is as it is: {note.why}", *note.changes.values()]
    told += [f"The usual mistake: {note.mistake}", " parent ", "\nAxes, and ", "\nLaunches on "]
    places = [out.index(words) for words in told]
    assert places == sorted(places)
    assert ("- update online_shared -> online: The report's v9 " in out) == (note is notes()["v9"])


def test_show_as_json(call: Call) -> None:
    shown = call("show", "t1", "--threads", 64, "--rows", 3, "--cols", 5000, "--json").json
    assert shown["variant"] == "t1:threads=64"
    assert shown["axes"]["threads_per_block"] == 64
    assert [launch["kernel"] for launch in shown["launches"]] == [
        f"softmax_t1_threads64_{phase}" for phase in ("max", "sum", "write")
    ]
    assert {(launch["grid"], launch["block"]) for launch in shown["launches"]} == {(3 * 5, 64)}
    assert shown["workspace_bytes"] == 3 * 8
    assert shown["why"] and shown["mistake"]
    assert shown["why_changes"].keys() == VERSIONS["t1"].changes.keys()


def test_explain_says_that_a_variant_is_valid(call: Call) -> None:
    explained = call("explain", "v7", "--items", "8", "--vec", 2)
    assert (explained.code, explained.out) == (0, "v7:vec=2,items=8 is valid.\n")
    assert call("explain", "v5", "--json").json == {
        "variant": "v5",
        "valid": True,
        "reasons": [],
        "nearest": None,
    }


def test_explain_refuses_with_the_reason_and_the_nearest(call: Call) -> None:
    refused = call("explain", "v8:topology=two_level")
    assert refused.code == 1
    first, reason, nearest = refused.out.splitlines()
    assert first == "v8:topology=two_level is refused:"
    assert reason.startswith("  - topology=two_level with 32 threads a row")
    assert nearest.startswith("The nearest valid one is v8:threads_per_row=auto ")
    as_json = call("explain", "v8:topology=two_level", "--json")
    assert as_json.code == 1
    assert as_json.json["valid"] is False and as_json.json["nearest"] == "v8:threads_per_row=auto"
    assert as_json.json["reasons"] == [reason.removeprefix("  - ")]


def test_the_host_is_told_of_what_is_not_serial_alone(call: Call) -> None:
    refused = call("explain", "cpu:row_loop=grid_stride").out
    assert (
        "  - row_loop=grid_stride with target=host: the host runs on one thread, row after "
        in refused
    )
    assert "; use row_loop=once or target=device\n" in refused
    assert (
        "threads=4,row_split=tiles with target=host"
        in call("explain", "cpu:threads=4,row_split=tiles").out
    )


def test_explain_on_a_shape(call: Call) -> None:
    assert call("explain", "v7:items=1", "--cols", 1027).code == 0
    refused = call("explain", "v7:items=1", "--cols", 1028)
    assert refused.code == 1
    assert "covers 1027 columns; cols=1028 needs items>=2" in refused.out
    as_json = call("explain", "v7:items=1", "--cols", 1028, "--json").json
    assert as_json["valid"] is False and len(as_json["reasons"]) == 1


@pytest.mark.parametrize(
    ("arguments", "said", "nearest"),
    [
        (
            ("v11:cache=exps_shared_bulk", "--arch", "sm_80"),
            "cache=exps_shared_bulk needs sm_90 or newer, which sm_80 is not; use "
            "cache=exps_shared_async",
            "v11:cache=exps_shared_async",
        ),
        (
            ("v13:cache=inputs_shared_bulk", "--arch", "sm_86"),
            "row_split=cluster_async needs sm_90 or newer, which sm_86 is not; use "
            "row_split=co_resident",
            "v13:row_split=co_resident,cache=inputs_shared_async",
        ),
        (
            ("v11:cache=exps_shared", "--arch", "sm_86", "--cols", 30000),
            "120000 bytes a block, more than the 101376 bytes of shared memory that sm_86 has",
            None,
        ),
        (
            ("v14:cache=exps_shared", "--arch", "sm_80", "--cols", 1400000),
            "166912 bytes of shared memory that sm_80 has; use blocks_per_row=64 or cache=none",
            None,
        ),
    ],
)
def test_explain_for_an_older_gpu(
    call: Call, arguments: tuple[object, ...], said: str, nearest: str | None
) -> None:
    explained = call("explain", *arguments, "--json").json
    assert not explained["valid"] and said in " ".join(explained["reasons"])
    assert explained["nearest"] == nearest
    assert call("explain", *arguments[:2], "sm_90").code == 0


def test_doctor_tells_what_is_missing_and_how_to_get_it(
    call: Call, no_nvcc: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    told = call("doctor")
    assert told.code == 0
    lines = told.out.splitlines()
    assert any(line.split()[:2] == ["Python", "yes"] for line in lines)
    assert "C++ compiler: install g++ or clang++" in lines
    assert "nvcc: pip install '.[nvcc]' in kgen's folder" in lines


def test_doctor_as_json(call: Call, no_nvcc: None) -> None:
    findings: dict[str, Any] = {
        finding["what"]: finding for finding in call("doctor", "--json").json
    }
    assert {"Python", "C++ compiler", "nvcc", "nvdisasm", "pycuda"} <= findings.keys()
    assert findings["Python"]["found"] is True and findings["nvcc"]["found"] is False
    assert findings["nvcc"]["install"] == "pip install '.[nvcc]' in kgen's folder"


def test_help_tells_the_commands_and_the_exit_codes(call: Call) -> None:
    told = call("--help")
    assert told.code == 0
    commands = "list show explain diff build export run check bench doctor".split()
    assert [word for word in commands if word not in told.out] == []
    assert "Exit codes: 0 fine" in " ".join(told.out.split())
