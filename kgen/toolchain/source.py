"""What the compiler takes: a source of kgen's, or a plain one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kgen.sources.source import Source


@dataclass(frozen=True)
class PlainSource:
    """A CUDA file that no spec describes; `kernels` are its extern "C" symbols.

    `requires` is the least architecture that it compiles for, such as `sm_90`; '' for any.
    """

    stem: str
    text: str
    kernels: tuple[str, ...]
    path: Path | None = None
    is_host: bool = False
    requires: str = ""

    @property
    def filename(self) -> str:
        """The file's name."""
        return self.stem + ".cu"

    @property
    def shown_name(self) -> str:
        """What messages call it."""
        return str(self.path or self.filename)


# A translation unit that nvcc compiles.
Compilable = Source | PlainSource
