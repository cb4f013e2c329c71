"""Files: written so that a reader never sees them half done, read with clear errors."""

from __future__ import annotations

import os
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from kgen.errors import Hindered, UsageError
from kgen.hindered import hindrance


def write_atomically(path: Path, data: str | bytes) -> None:
    """Put `data` (text as UTF-8) at `path` in one step, making its folder when there is none.

    Raises UsageError that names the path when it cannot be written, Hindered for lack of space.
    """
    content = data.encode("utf-8") if isinstance(data, str) else data
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        if lack := hindrance(error):
            raise Hindered(f"{path} cannot be written: {lack}") from None
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file holds. Raises UsageError that names it when it is none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
