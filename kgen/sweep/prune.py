"""Leaves out of a sweep the candidates whose time nobody needs, before any GPU time."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import replace

from kgen.launch import LaunchPlan
from kgen.store.measurement import Measurement, Outcome, Provenance
from kgen.sweep.pruning import static_problems
from kgen.timing.candidates import Candidate
from kgen.timing.protocol import Protocol
from kgen.timing.summary import blank
from kgen.toolchain import Binary, machine_code_digest


def prune(
    candidates: Sequence[Candidate], protocol: Protocol, provenance: Provenance
) -> tuple[list[Candidate], list[Measurement]]:
    """Return the candidates of a shape that are worth a time, and the rows of the others.

    What spills, cannot run, or is the machine code of an earlier candidate is left out; what did
    not compile, or was not compiled, stays.
    """
    worth: list[Candidate] = []
    pruned: list[Measurement] = []
    first_with: dict[tuple[object, ...], str] = {}
    for candidate in candidates:
        if reason := _reason(candidate, first_with):
            row = blank(candidate, protocol, provenance)
            pruned.append(replace(row, outcome=Outcome.PRUNED, reason=reason))
        else:
            worth.append(candidate)
    return worth, pruned


def _reason(candidate: Candidate, first_with: dict[tuple[object, ...], str]) -> str:
    if not isinstance(candidate.binary, Binary) or candidate.plan is None:
        return ""
    if problems := static_problems(candidate.binary, candidate.plan):
        return "; ".join(problems)
    identity = _identity(candidate.binary, candidate.plan)
    twin = first_with.setdefault(identity, candidate.name)
    return "" if twin == candidate.name else f"the same machine code and launch as {twin}"


def _identity(binary: Binary, plan: LaunchPlan) -> tuple[object, ...]:
    """Return what two candidates share only if a GPU cannot tell them apart."""
    codes = (machine_code_digest(binary, kernel.kernel) for kernel in binary.kernels)
    launches = (dataclasses.replace(launch, kernel="") for launch in plan.launches)
    return (*codes, *launches, plan.workspace_bytes)
