"""What a plan is made of: one kernel on one shape."""

from __future__ import annotations

from dataclasses import dataclass

from kgen.specs.spec import Spec
from kgen.specs.variants import spelling


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel on one shape. `auto` items in `spec` stand for what the row needs.

    `named` are the axes that its variant or the sweep set.
    """

    spec: Spec
    rows: int
    cols: int
    named: frozenset[str] = frozenset()

    @property
    def variant(self) -> str:
        """The kernel as a user types it, every axis that was set included."""
        return spelling(self.spec, self.named)

    @property
    def resolved(self) -> Spec:
        """The spec of the kernel that runs: `auto` items replaced by their number."""
        return self.spec.resolve(self.cols)
