"""Where templates are: kgen's, and a folder of the user's that is looked through before them."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import kgen
from kgen.errors import UsageError
from kgen.files import named_path

# The environment carries the folder into every process that kgen starts.
VARIABLE = "KGEN_TEMPLATES"


@functools.cache
def template_dir() -> Path:
    """Return kgen's templates: inside an installed package, beside it in a checkout."""
    package = Path(kgen.__file__).parent
    inside = package / "templates"
    return inside if inside.is_dir() else package.parent / "templates"


def user_template_dir() -> Path | None:
    """Return the folder of the user's templates that $KGEN_TEMPLATES names, if it names one.

    Raises UsageError when there is no such folder.
    """
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    folder = named_path(named).resolve()
    if not folder.is_dir():
        raise UsageError(f"there is no folder of templates {named}; see --templates")
    return folder


def use_templates(folder: Path) -> None:
    """Look for templates in a folder first, in this process and in those that it starts.

    Raises UsageError when there is no such folder.
    """
    os.environ[VARIABLE] = str(named_path(str(folder)).resolve())
    user_template_dir()
