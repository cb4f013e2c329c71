"""A kernel's source text together with the spec it was rendered from (or edited from)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kgen.launch import LaunchPlan
    from kgen.specs.spec import Spec


class Contract(Protocol):
    """How a file that kgen did not write is launched, which its spec then does not say."""

    @property
    def label(self) -> str:
        """What users call the file with the constants that they set in it."""
        ...

    def require(self, rows: int, cols: int) -> None:
        """Raise UsageError for a shape that the file does not take."""

    def plan(self, rows: int, cols: int) -> LaunchPlan:
        """Return the launches on a shape. Raises UsageError as `require` does."""
        ...

    @property
    def shared_names(self) -> tuple[str, ...]:
        """What linkers call the dynamic shared arrays of kernels in namespaces."""
        ...


@dataclass(frozen=True)
class Source:
    """One translation unit: `text` defines `kernels` (extern "C" symbols) for `spec`.

    `stem` names the file (`softmax_v6`); `path` is set when the text was read from a user's file,
    which is then the file that compilers and reports name. An adopted file has a `contract`; its
    spec then says what is computed, and nothing of how.
    """

    spec: Spec
    stem: str
    text: str
    kernels: tuple[str, ...]
    path: Path | None = None
    contract: Contract | None = None

    @property
    def is_host(self) -> bool:
        """Whether this is plain C++ for the host rather than kernels."""
        return self.spec.is_host

    @property
    def requires(self) -> str:
        """The least architecture that has what the kernels use, such as `sm_90`; '' for any."""
        return self.spec.requires

    @property
    def filename(self) -> str:
        """The file's name: `.cpp` for the serial host version, `.cu` for everything else."""
        return self.stem + (".cpp" if self.is_host else ".cu")

    @property
    def shown_name(self) -> str:
        """What messages call it: the path of the user's file, or its own file name."""
        return str(self.path or self.filename)
