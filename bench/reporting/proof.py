"""The sections on what proves kernels right: mutants, and NVIDIA's tools on a GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kgen.errors import UsageError
from kgen.studies.markdown import plain, table
from reporting import origin
from reporting.objects import read_object, records
from reporting.page import Section, paragraphs

_MUTANT_COLUMNS = ("mutant", "shape", "tool", "tool_errors", "output_on_gpu", "kgen_found_by")


def mutants_section(path: Path, title: str) -> Section:
    """Return the section of a mutation campaign: its sums."""
    content = read_object(path)
    try:
        caught = Counter(
            result["caught_by"] for result in content["results"] if result["caught_by"]
        )
        by = ", ".join(f"{count} by {how}" for how, count in caught.most_common())
        words = (
            f"{content['mutants']} mutants: {content['caught']} caught ({by}), "
            f"{content['equivalent']} equivalent to the original, {content['survivors']} survivors."
        )
    except (LookupError, TypeError) as error:
        raise UsageError(f"{path} is no result of kgen mutate: it lacks {error}") from None
    return Section(title, paragraphs(plain(origin.of_object(content)), words))


def agreement_section(path: Path, title: str) -> Section:
    """Return the section on what NVIDIA's tools say beside what the CPU executor says."""
    content = read_object(path)
    try:
        parts = _counts(content["counts"]), _clean(content["clean"]), _mutants(content["mutants"])
    except (LookupError, TypeError) as error:
        raise UsageError(f"{path} is no result of bench/agreement: it lacks {error}") from None
    return Section(title, paragraphs(plain(origin.of_object(content)), *parts))


def _counts(counts: Sequence[Mapping[str, Any]]) -> str:
    differ = [row for row in counts if row["ncu"] != row["kgen"]]
    words = (
        "Global loads and stores that Nsight Compute measures and the CPU executor counts: equal "
        f"in {len(counts) - len(differ)} of {len(counts)} cases."
    )
    return paragraphs(words, records(differ))


def _clean(clean: Mapping[str, Any]) -> str:
    launched = len(clean["jobs"])
    rows = [
        [
            tool,
            _errors(errors),
            f"{clean['right_outputs'][tool]} of {launched}",
            ", ".join(clean["kernels_named"][tool]),
        ]
        for tool, errors in clean["errors"].items()
    ]
    columns = ("tool", "errors>", "right outputs>", "kernels it names")
    words = f"The tools of compute-sanitizer on {launched} right kernels and shapes:"
    return paragraphs(words, table(columns, rows))


def _mutants(mutants: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [_errors(row[key]) if key == "tool_errors" else row[key] for key in _MUTANT_COLUMNS]
        for row in mutants
    ]
    found = [
        sum(row["tool_errors"] > 0 for row in mutants),
        sum(bool(row["kgen_found_by"]) for row in mutants),
    ]
    words = (
        f"Of {len(rows)} kernels with a mistake the tool that should see it reports {found[0]}, "
        f"kgen {found[1]}:"
    )
    columns = ("mutant", "shape", "tool", "its errors>", "output on the GPU", "kgen found it by")
    return paragraphs(words, table(columns, rows))


def _errors(count: int) -> str:
    return "no verdict" if count < 0 else str(count)
