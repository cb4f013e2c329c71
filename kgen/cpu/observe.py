"""Runs a launch plan on the CPU and observes every access of the unmodified source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgen.cpu.build import build
from kgen.cpu.debug_lines import source_lines
from kgen.cpu.faults import fault_of
from kgen.cpu.observation import (
    OUT_OF_BOUNDS,
    Access,
    Counts,
    MemoryFault,
    Observation,
    ObservedFault,
    Race,
)
from kgen.cpu.process import execute
from kgen.cpu.run import check_request, job_text, matrices, result
from kgen.launch import LaunchPlan
from kgen.machine_trouble import telling_trouble
from kgen.numpy_types import numpy_dtype
from kgen.sources.source import Source
from kgen.specs.declared import FLOAT32

_RACE = "race"
_FAULTS = {
    OUT_OF_BOUNDS: "{0} out of bounds, {1}",
    "uninitialised": "{0} of {1}, which nobody has written",
    "written_twice": "second {0} of {1} by another thread, before anybody read the first",
    "unwritten": "nobody writes {1}",
    "unfenced": "a bulk copy {0}s {1}, with no fence_proxy_async since a thread wrote it",
}
_VERBS = {"read": "reads", "write": "writes", "atomic": "updates"}
_COUNTS_START = '{"counts": '
_FINDING_START = '{"finding": '
_COUNTS = msgspec.json.Decoder(dict[str, Counts])


@telling_trouble()
def observe(
    source: Source,
    plan: LaunchPlan,
    x: NDArray[Any],
    *,
    schedule: str = "in_order",
    seed: int = 0,
    timeout_s: float = 120.0,
    offsets: tuple[int, int] = (0, 0),
) -> Observation:
    """Return what the plan's kernels make of `x`, and what they do to memory meanwhile.

    The arguments and errors are those of kgen.cpu.run. Broken rules of memory are findings and no
    errors, unless they end the run (a misaligned access, a crash): then an ObservedFault carries
    what was found. Raises MissingTool when the compiler is not GCC.
    """
    check_request(source, plan, x, schedule)
    if not plan.launches:
        return Observation(np.empty(x.shape, numpy_dtype(plan.out_dtype)), (), (), ())
    executable = build(source, observing=True)
    with matrices(plan, x, offsets) as buffers:
        job = job_text(plan, buffers, schedule, seed, workers=1)
        outcome = execute(executable, job, buffers.descriptor, timeout_s)
        lines = outcome.messages.splitlines()
        findings = _findings(source, plan, executable, lines)
        faults = tuple(found for found in findings if isinstance(found, MemoryFault))
        races = tuple(found for found in findings if isinstance(found, Race))
        if outcome.exit_code != 0 or outcome.timed_out:
            fault = fault_of(source, plan, executable, outcome, timeout_s)
            raise ObservedFault(fault, faults, races) if findings else fault
        y = result(buffers, plan)
    counts = [_COUNTS.decode(line)["counts"] for line in lines if line.startswith(_COUNTS_START)]
    return Observation(y, tuple(counts), faults, races)


def _findings(
    source: Source, plan: LaunchPlan, executable: Path, lines: list[str]
) -> list[MemoryFault | Race]:
    found = [json.loads(line)["finding"] for line in lines if line.startswith(_FINDING_START)]
    counters = [
        party["program_counter"]
        for finding in found
        for party in finding["parties"]
        if "program_counter" in party
    ]
    line_of = source_lines(counters, executable, source.filename)
    return [_finding(source, plan, line_of, finding) for finding in found]


def _finding(
    source: Source, plan: LaunchPlan, line_of: dict[int, int], found: dict[str, Any]
) -> MemoryFault | Race:
    accesses = [
        Access(party["kind"], _line(party, line_of), party["block"], party["thread"])
        for party in found["parties"]
    ]
    where = (found["kernel"], found["buffer"], found["offset"])
    place = _place(plan, found)
    line = f":{accesses[0].line}" if accesses[0].line else ""
    message = f"{source.shown_name}{line}: kernel {found['kernel']}"
    if found["what"] == _RACE:
        second, first = accesses
        message += f": {_race(first, second, place)}"
        return Race(*where, first, second, found["times"], message)
    (access,) = accesses
    if access.thread >= 0:
        message += f", block {access.block}, thread {access.thread}"
    message += f": {_FAULTS[found['what']].format(access.kind, place)}"
    return MemoryFault(found["what"], *where, access, found["times"], message)


def _line(party: dict[str, Any], line_of: dict[int, int]) -> int:
    return int(party["line"] if "line" in party else line_of.get(party["program_counter"], 0))


def _place(plan: LaunchPlan, found: dict[str, Any]) -> str:
    offset, size, buffer = found["offset"], found["buffer_bytes"], found["buffer"]
    if offset < 0:
        return f"{-offset} bytes before the start of {buffer} ({size} bytes)"
    if offset >= size:
        return f"{offset - size} bytes past the end of {buffer} ({size} bytes)"
    of_matrices = {"x": plan.dtype.bytes, "y": plan.out_dtype.bytes}
    computed = max(FLOAT32.bytes, plan.dtype.bytes)
    return f"element {offset // of_matrices.get(buffer, computed)} of {buffer}"


def _race(first: Access, second: Access, place: str) -> str:
    return (
        f"race on {place}: {_does(second)} it on line {second.line}, and {_does(first)} it on line "
        f"{first.line}, with nothing that orders the two"
    )


def _does(access: Access) -> str:
    return f"thread {access.thread} of block {access.block} {_VERBS[access.kind]}"
