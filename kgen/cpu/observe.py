"""Runs a launch plan on the CPU and observes every access of the unmodified source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgen.cpu.build import build
from kgen.cpu.compiler import display_name
from kgen.cpu.debug_lines import source_lines
from kgen.cpu.faults import fault_of
from kgen.cpu.observation import Access, Counts, MemoryFault, Observation, Race
from kgen.cpu.process import execute
from kgen.cpu.run import check_request, job_text, matrices, result
from kgen.launch import LaunchPlan
from kgen.sources.source import Source

_RACE = "race"
_FAULTS = {
    "out_of_bounds": "{access} of {place}, which is no memory of the kernel's",
    "uninitialised": "{access} of {place}, which nobody has written",
    "written_twice": "{place} is written a second time, by another thread, before anybody read it",
    "unwritten": "no thread writes {place}",
}
_COUNTS_START = '{"counts": '
_FINDING_START = '{"finding": '


def observe(
    source: Source,
    plan: LaunchPlan,
    x: NDArray[np.float32],
    *,
    schedule: str = "in_order",
    seed: int = 0,
    timeout_s: float = 120.0,
    x_offset: int = 0,
    y_offset: int = 0,
) -> Observation:
    """Return what the plan's kernels make of `x`, and what they do to memory meanwhile.

    The arguments and errors are those of kgen.cpu.run. Broken rules of memory are findings and no
    errors, unless they end the run (a misaligned access, a crash). Raises MissingTool when the
    compiler is not GCC.
    """
    check_request(source, plan, x, schedule)
    if not plan.launches:
        return Observation(np.empty(x.shape, np.float32), (), (), ())
    executable = build(source, observing=True)
    with matrices(plan, x, x_offset, y_offset) as buffers:
        job = job_text(plan, buffers, schedule, seed, workers=1)
        outcome = execute(executable, job, buffers.descriptor, timeout_s)
        if outcome.exit_code != 0 or outcome.timed_out:
            raise fault_of(source, plan, executable, outcome, timeout_s)
        y = result(buffers, x.shape)
    lines = outcome.messages.splitlines()
    findings = _findings(source, executable, lines)
    return Observation(
        y,
        tuple(_counts(line) for line in lines if line.startswith(_COUNTS_START)),
        tuple(found for found in findings if isinstance(found, MemoryFault)),
        tuple(found for found in findings if isinstance(found, Race)),
    )


def _counts(line: str) -> Counts:
    values: dict[str, Any] = json.loads(line)["counts"]
    for name, value in values.items():
        if isinstance(value, list):
            values[name] = tuple(value)
    return Counts(**values)


def _findings(source: Source, executable: Path, lines: list[str]) -> list[MemoryFault | Race]:
    found = [json.loads(line)["finding"] for line in lines if line.startswith(_FINDING_START)]
    counters = [party["program_counter"] for finding in found for party in finding["parties"]]
    line_of = source_lines(counters, executable, source.filename)
    return [_finding(source, line_of, finding) for finding in found]


def _finding(
    source: Source, line_of: dict[int, int], finding: dict[str, Any]
) -> MemoryFault | Race:
    accesses = [
        Access(party["kind"], line_of.get(party["program_counter"], 0), *_who(party))
        for party in finding["parties"]
    ]
    kernel, place, times = finding["kernel"], finding["place"], finding["times"]
    file = display_name(source)
    if finding["what"] == _RACE:
        first, second = accesses
        message = _race_words(file, kernel, place, first, second)
        return Race(kernel, place, first, second, times, message)
    (access,) = accesses
    message = _fault_words(file, kernel, finding, access)
    return MemoryFault(finding["what"], kernel, place, access, times, message)


def _who(party: dict[str, Any]) -> tuple[int, int]:
    return party["block"], party["thread"]


def _race_words(file: str, kernel: str, place: str, first: Access, second: Access) -> str:
    return (
        f"{file}:{second.line}: kernel {kernel}: race: {_does(second)} {place}, and nothing orders "
        f"that after line {first.line}, where {_does(first)} it"
    )


def _does(access: Access) -> str:
    verb = {"read": "reads", "write": "writes", "atomic": "atomically updates"}[access.kind]
    return f"thread {access.thread} of block {access.block} {verb}"


def _fault_words(file: str, kernel: str, finding: dict[str, Any], access: Access) -> str:
    place = finding["place"]
    if access.thread < 0:
        return f"{file}: kernel {kernel}: {_FAULTS[finding['what']].format(place=place)}"
    words = _FAULTS[finding["what"]].format(
        access=f"{finding['bytes']}-byte {access.kind}", place=place
    )
    who = f"kernel {kernel}, block {access.block}, thread {access.thread}"
    return f"{file}:{access.line}: {who}: {words}"
