"""Which named version an adopted kernel is nearest to, by what it does for an element or a row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from kgen.adopted.source import Adopted
from kgen.errors import UsageError
from kgen.evidence.inputs import make
from kgen.execute import observe, source_for
from kgen.launch import LaunchPlan, plan
from kgen.limits import WARP_SIZE
from kgen.shape import Shape
from kgen.sources.source import Source
from kgen.specs.rules import problems_for
from kgen.specs.spec import Spec
from kgen.specs.versions import VERSIONS
from kgen.sweep.foretold import counts

# Shapes to compare on, the first that both take.
SHAPES = ((64, 1024), (64, 256), (64, 32), (1, 1024))
# What is compared: how it is called, and how much a factor of two weighs.
TRAITS = {
    "threads a row": 1.0,
    "launches": 2.0,
    "loads for 32 elements": 2.0,
    "stores for 32 elements": 2.0,
    "exponentials an element": 1.0,
    "shuffles a warp of the row": 0.25,
    "barriers a row": 0.5,
    "shared accesses a warp of the row": 0.25,
}
_FAR = 4.0


@dataclass(frozen=True)
class Placed:
    """The nearest version, what both do by trait, and the shape that they were compared on."""

    version: str
    shape: Shape
    own: dict[str, float]
    versions: dict[str, float]
    others: tuple[str, ...]

    @property
    def differences(self) -> list[tuple[str, float, float]]:
        """The traits in which the two differ by more than a tenth: own value, the version's."""
        return [
            (name, self.own[name], self.versions[name])
            for name in TRAITS
            if _distance({name: self.own[name]}, {name: self.versions[name]}) > 0.14 * TRAITS[name]
        ]


def place(source: Source) -> Placed:
    """Return where an adopted source belongs; its kernels run once, observed.

    Raises UsageError where it takes no shape to compare on, and what observing it raises.
    """
    contract = source.contract
    assert isinstance(contract, Adopted)
    for shape in SHAPES:
        if contract.takes(*shape):
            return _placed(source, shape)
    shapes = ", ".join(f"{rows} x {cols}" for rows, cols in SHAPES)
    raise UsageError(f"{contract.label} takes none of {shapes}, on which versions are compared")


def _placed(source: Source, shape: Shape) -> Placed:
    total = observe(source, make("uniform", *shape)).total
    seen = {
        "global_loads": total.global_loads,
        "global_stores": total.global_stores,
        "shared_accesses": total.shared_loads + total.shared_stores,
        "exponentials": total.exponentials,
        "shuffles": total.shuffles,
        "barriers": total.barriers,
    }
    own = _traits(seen, plan(source, *shape), shape)
    versions = {
        name: _traits_of(version.spec, shape)
        for name, version in VERSIONS.items()
        if not version.spec.is_host and not problems_for(version.spec, *shape)
    }
    nearest = sorted(versions, key=lambda name: _distance(own, versions[name]))
    return Placed(nearest[0], shape, own, versions[nearest[0]], tuple(nearest[1:3]))


def _traits_of(spec: Spec, shape: Shape) -> dict[str, float]:
    resolved = spec.resolve(shape[1])
    return _traits(counts(resolved, *shape), plan(source_for(resolved, *shape), *shape), shape)


def _traits(done: Mapping[str, float], launches: LaunchPlan, shape: Shape) -> dict[str, float]:
    """Return what warps did for an element, and for a warp of a row."""
    rows, cols = shape
    of_row = max(launch.grid * launch.block / rows for launch in launches.launches)
    warps = rows * max(1.0, of_row / WARP_SIZE)
    elements = rows * cols / WARP_SIZE
    # Warps whose lanes have rows of their own do for 32 rows what others do for one.
    values = (
        min(of_row, cols),
        len(launches.launches),
        done["global_loads"] / elements,
        done["global_stores"] / elements,
        done["exponentials"] / elements,
        done["shuffles"] / warps,
        done["barriers"] / warps,
        done["shared_accesses"] / warps,
    )
    return dict(zip(TRAITS, map(float, values), strict=True))


def _distance(one: dict[str, float], other: dict[str, float]) -> float:
    """Return how far apart two are, in weighted factors of two."""
    return sum(TRAITS[name] * _factors(one[name], other[name]) for name in one)


def _factors(a: float, b: float) -> float:
    """Return the factors of two between numbers; what one does and the other does not is far."""
    if a < 0.01 or b < 0.01:
        return 0.0 if max(a, b) < 0.01 else _FAR
    return min(_FAR, abs(math.log2(a / b)))
