"""Runs the checks on every mutant of a version and says what caught it."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import msgspec

from kgen.errors import MissingTool
from kgen.evidence.check import CheckRow, check, check_far_rows, walked_rows
from kgen.evidence.inputs import ALL_INPUTS
from kgen.evidence.mutation.machine_code import same_machine_code
from kgen.evidence.mutation.mistakes import Mutant, mutants
from kgen.processes import thread_pool
from kgen.sources.render import render
from kgen.sources.source import Source
from kgen.specs.formula import ceil_div, formula
from kgen.specs.rules import problems_for
from kgen.specs.rules.shapes import most_rows
from kgen.specs.spec import Spec
from kgen.specs.variants import spelling

SURVIVORS = Path(__file__).parent / "survivors.toml"
SAME_CODE = "the machine code is the same"
# The least row length of sources and runs: of several tiles, and of a tail.
COLS = 1027
# Enough rows for every input in turn, and a last block that is not full.
ROWS = 45
# A mutant that loops for ever is one that was caught; right kernels take milliseconds.
TIMEOUT_S = 5.0


@dataclass(frozen=True)
class MutantResult:
    """What became of a mutant.

    `caught_by` is `compiler`, `fault`, `result`, `memory` or `race`; it is empty for a mutant that
    no check told from the original. `equivalent` says why nothing could: the machine code is the
    same, or the reason that survivors.toml gives. `reason` is what the check said.
    """

    variant: str
    mutant: Mutant
    caught_by: str = ""
    reason: str = ""
    equivalent: str = ""

    @property
    def survives(self) -> bool:
        """Whether the mutant is a real mistake that no check catches."""
        return not self.caught_by and not self.equivalent


def campaign(specs: Iterable[Spec]) -> Iterator[MutantResult]:
    """Yield the result of every mutant of the specs, several at a time, in a fixed order.

    Raises MissingTool when there is no C++ compiler.
    """
    jobs = [
        (spelling(spec), source, mutant)
        for spec in specs
        for source in [render(spec.resolve(longest(spec)))]
        for mutant in mutants(source)
    ]
    with thread_pool(os.cpu_count() or 1) as pool:
        yield from pool.map(lambda job: result_of(*job), jobs)


def result_of(variant: str, original: Source, mutant: Mutant) -> MutantResult:
    """Return what the checks make of one mutant of a variant's source."""
    failed = first_failure(mutant.source)
    if failed:
        return MutantResult(variant, mutant, failed.found_by, failed.reason)
    return MutantResult(variant, mutant, equivalent=_why_equivalent(original, mutant))


def first_failure(source: Source) -> CheckRow | None:
    """Return the first failed row of the checks, cheap ones first; None when all pass."""
    quick = check(source, shapes=_shapes(source.spec), timeout_s=TIMEOUT_S)
    far = check_far_rows(source, timeout_s=TIMEOUT_S)
    if failed := next((row for row in chain(quick, far) if not row.ok), None):
        return failed
    observed = check(
        source,
        shapes=_shapes(source.spec),
        schedules=("reversed",),
        timeout_s=TIMEOUT_S,
        memory=True,
        races=True,
    )
    return next((row for row in observed if not row.ok), None)


def longest(spec: Spec) -> int:
    """Return a row length of which a thread has several items, and a tail is left."""
    return max(COLS, 2 * spec.row_width * spec.vec_size + 3)


def _shapes(spec: Spec) -> list[tuple[int, int]]:
    """Return lengths at and around the limits of the spec; the longest finds most, and is first."""
    vec, step, walked = spec.vec_size, spec.row_width * spec.vec_size, walked_rows(spec)
    lengths = [longest(spec), 3, 33, 257, step, step + 1, 2 * step + vec, 1]
    lengths += [2 * spec.tile_cols, 3 * spec.tile_cols + 5] if spec.uses_tiles else []
    rows = min(ROWS, most_rows(spec))
    # The last row starts on a boundary of vectors and does not end on one.
    shapes = [(rows, cols) for cols in lengths] + [((walked + spec.rows_per_block + 1) | 1, 70)]
    fitting = [shape for shape in dict.fromkeys(shapes) if not problems_for(spec, *shape)]
    # The longest again and again, until all inputs have had a row.
    return fitting[:1] * ceil_div(len(ALL_INPUTS), rows) + fitting[1:] if fitting else []


def _why_equivalent(original: Source, mutant: Mutant) -> str:
    try:
        if not original.spec.is_host and same_machine_code(original, mutant.source):
            return SAME_CODE
    except MissingTool:
        pass  # without an nvcc the written reasons alone decide
    return explanation("equivalent", original.spec, mutant.key)


def explanation(kind: str, spec: Spec, key: str) -> str:
    """Return why survivors.toml counts a spec's mutant to `equivalent` or `survivor`; '' if not."""
    reasons = written_reasons()[kind]
    return next((one.why for one in reasons if key in one.mutants and one.holds_for(spec)), "")


class WrittenReason(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why some mutants do the same, or stay unseen; `where` is a formula of the specs' facts."""

    mutants: tuple[str, ...]
    where: str
    why: str

    def holds_for(self, spec: Spec) -> bool:
        """Return whether it is about such a spec."""
        return bool(formula(self.where).of(spec))


@functools.cache
def written_reasons() -> dict[str, tuple[WrittenReason, ...]]:
    """Return the reasons that survivors.toml has, by their kind."""
    return msgspec.toml.decode(SURVIVORS.read_bytes(), type=dict[str, tuple[WrittenReason, ...]])
