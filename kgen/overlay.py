"""Where templates are: kgen's, and a folder of the user's that may be laid over them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from kgen.errors import UsageError
from kgen.files import named_path


@functools.cache
def template_dir() -> Path:
    """Return kgen's templates: inside an installed package, beside it in a checkout."""
    package = Path(__file__).parent
    inside = package / "templates"
    return inside if inside.is_dir() else package.parent / "templates"


@dataclass(frozen=True, order=True)
class Overlay:
    """kgen's templates, and over them those of a user's `folder`, if there is one.

    A spec carries it, so it goes wherever the spec goes, into other processes too.
    """

    folder: Path | None = None

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of templates, kgen's first."""
        return tuple(filter(None, (template_dir(), self.folder)))


OURS = Overlay()


def overlay(folder: Path) -> Overlay:
    """Return kgen's templates with a folder over them. Raises UsageError when there is none."""
    found = named_path(str(folder))
    if not found.is_dir():
        raise UsageError(
            f"there is no folder of templates {folder}; name one with templates or a choices.toml"
        )
    return Overlay(found.resolve())
