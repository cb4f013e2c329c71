"""What is wrong with a kernel, as a list: each thing once, with the shapes where it shows."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kgen.cpu.observation import OUT_OF_BOUNDS, MemoryFault, Observation, ObservedFault, Race
from kgen.errors import CheckFailed, MissingTool
from kgen.execute import observe
from kgen.shape import Shape

if TYPE_CHECKING:
    from kgen.evidence.check import CheckRow
    from kgen.evidence.inputs import Matrix
    from kgen.sources.source import Source
    from kgen.specs.spec import Spec

# Of the shapes where something fails, so many are named and the others counted.
SHAPES_TOLD = 3
COMPILER, FAULT, RESULT, MEMORY, RACE = "compiler", "fault", "result", "memory", "race"


def apart(spec: Spec) -> tuple[int, int]:
    """Return by how many elements to move x and y off an aligned address.

    They are half a vector apart, so that who asks for less of an alignment than a vector has takes
    them for aligned alike.
    """
    return 1, 1 + max(1, spec.vec_size // 2)


@dataclass(frozen=True)
class Failure:
    """One thing that is wrong.

    `kind` is `compiler`, `fault` (of the running kernel), `result`, `memory` or `race`; `lines`
    are those of the source where it happens, as far as they are known.
    """

    kind: str
    message: str
    lines: tuple[int, ...] = ()


@dataclass(frozen=True)
class Finding:
    """A failure with the first SHAPES_TOLD shapes (rows, cols) where it shows, and how many do.

    Failures of a variant that are of one kind and on the same lines are the same; the message is
    the first one's.
    """

    variant: str
    kind: str
    lines: tuple[int, ...]
    shapes: tuple[Shape, ...]
    count: int
    message: str

    @property
    def where(self) -> str:
        """The shapes in words: `5 x 257, 5 x 1028, 5 x 33 and 12 more`."""
        told = ", ".join(f"{rows} x {cols}" for rows, cols in self.shapes)
        more = self.count - len(self.shapes)
        return told + f" and {more} more" * (more > 0)


def findings(rows: Iterable[CheckRow]) -> list[Finding]:
    """Return what failed in rows of checks: a variant's in their order, what was observed first."""
    found: dict[tuple[str, str, tuple[int, ...]], list[tuple[Failure, Shape]]] = {}
    for row in rows:
        for failure in row.failures:
            place = (row.variant, failure.kind, failure.lines)
            found.setdefault(place, []).append((failure, (row.rows, row.cols)))
    made = [_finding(*place, same) for place, same in found.items()]
    variants = list(dict.fromkeys(finding.variant for finding in made))
    return sorted(
        made, key=lambda one: (variants.index(one.variant), one.kind not in (MEMORY, RACE))
    )


def _finding(
    variant: str, kind: str, lines: tuple[int, ...], same: list[tuple[Failure, Shape]]
) -> Finding:
    shapes = tuple(dict.fromkeys(shape for _, shape in same))
    first, _ = same[0]
    return Finding(variant, kind, lines, shapes[:SHAPES_TOLD], len(shapes), first.message)


def observed_failures(
    source: Source,
    x: Matrix,
    order: str,
    timeout_s: float,
    kinds: tuple[str, ...],
    offsets: tuple[int, int] = (0, 0),
) -> list[Failure]:
    """Return the failures of these kinds (`memory`, `race`) that an observed run of `x` shows.

    x and y start `offsets` elements off an aligned address. A fault that ends the run where
    nothing was found is raised.
    """
    try:
        seen: Observation | ObservedFault = observe(
            source, x, schedule=order, timeout_s=timeout_s, offsets=offsets
        )
    except ObservedFault as fault:
        seen = fault
    outside = [fault for fault in seen.memory_faults if fault.what == OUT_OF_BOUNDS]
    others = [fault for fault in seen.memory_faults if fault.what != OUT_OF_BOUNDS]
    found: list[Race | MemoryFault] = [*outside, *seen.races, *others]  # causes before effects
    return [failure for failure in map(_failure, found) if failure.kind in kinds]


def _failure(found: Race | MemoryFault) -> Failure:
    if isinstance(found, Race):
        return Failure(RACE, found.message, tuple(sorted({found.first.line, found.second.line})))
    return Failure(MEMORY, found.message, (found.access.line,) if found.access.line else ())


def causes(
    source: Source,
    x: Matrix,
    order: str,
    timeout_s: float,
    kinds: tuple[str, ...] = (MEMORY, RACE),
) -> list[Failure]:
    """Return what observed runs show of a kernel that is wrong, if it can be observed."""
    places = ((0, 0), apart(source.spec)) if source.spec.asks_alignment else ((0, 0),)
    for offsets in places:
        # What is known already has to do where nothing can be observed.
        with suppress(CheckFailed, MissingTool):
            if found := observed_failures(source, x, order, timeout_s, kinds, offsets):
                return found
    return []
