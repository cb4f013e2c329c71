"""What the compiler needs of a source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class Compilable(Protocol):
    """A translation unit: a generated `Source`, or a `PlainSource`."""

    @property
    def stem(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def kernels(self) -> tuple[str, ...]: ...
    @property
    def path(self) -> Path | None: ...
    @property
    def is_host(self) -> bool: ...
    @property
    def requires(self) -> str: ...
    @property
    def filename(self) -> str: ...


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
