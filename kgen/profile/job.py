"""What is profiled: a kernel on a shape, and how that is spelled on a command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kgen.errors import UsageError
from kgen.overlay import OURS, Overlay

if TYPE_CHECKING:
    from kgen.sources.source import Source

# The option by which the program that ncu watches is told of a user's templates.
TEMPLATES = "--templates="


@dataclass(frozen=True)
class ProfileTarget:
    """One softmax call: a variant or the path of an edited `.cu`, on a rows x cols matrix."""

    variant: str
    rows: int
    cols: int
    overlay: Overlay = OURS

    def __str__(self) -> str:
        return f"{self.variant}@{self.rows}x{self.cols}"

    @classmethod
    def read(cls, text: str, overlay: Overlay = OURS) -> ProfileTarget:
        """Return the job that `str` spelled so. Raises ValueError for any other text."""
        variant, _, shape = text.rpartition("@")
        rows, _, cols = shape.partition("x")
        return cls(variant, int(rows), int(cols), overlay)

    def source(self) -> Source:
        """Return what runs.

        Raises UsageError for an unknown variant, an unreadable file, a version for the host, and a
        shape that is empty or that the variant cannot run on.
        """
        from kgen.execute import find_target, require_kernel, source_for

        if self.rows < 1 or self.cols < 1:
            raise UsageError(
                f"{self.rows} x {self.cols} has no elements: give --rows and --cols of at least 1"
            )
        target = find_target(self.variant, self.overlay)
        require_kernel(target, "it has no warps to profile, so name a version other than cpu")
        return source_for(target, self.rows, self.cols)
