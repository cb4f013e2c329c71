"""Files: written so that a reader never sees them half done, read with clear errors."""

from __future__ import annotations

import os
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from kgen.errors import Hindered, UsageError
from kgen.hindered import hindrance


def named_path(text: str) -> Path:
    """Return the path that a variable or an option names; a leading ~ is the home folder.

    Shells leave the ~ where it follows a `=` or stands in quotes.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError:  # of a user that is not known here
        return Path(text)


def absolute_program(word: str) -> str:
    """Return a word of a command so that it means the same in any folder.

    Compilers run in other folders than the user, who may name a file from where he is.
    """
    path = named_path(word)
    return str(path.absolute()) if os.sep in word and path.exists() else word


def write_atomically(path: Path, data: str | bytes) -> None:
    """Put `data` (text as UTF-8) at `path` in one step, making its folder when there is none.

    Raises UsageError that names the path when it cannot be written, Hindered for lack of space.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data)
    except OSError as error:
        if lack := hindrance(error):
            raise Hindered(f"{path} cannot be written: {lack}") from None
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


def replace_file(path: Path, data: str | bytes) -> None:
    """Do so in a folder that is there. Raises OSError."""
    content = data.encode("utf-8") if isinstance(data, str) else data
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file holds, with or without a byte order mark in front of it.

    Raises UsageError that names it when it is none.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
