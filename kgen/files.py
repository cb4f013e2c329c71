"""Files: written so that a reader never sees them half done, read with clear errors."""

from __future__ import annotations

import os
import secrets
import stat
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

from kgen.errors import MachineTrouble, UsageError
from kgen.machine_trouble import trouble_of


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

    A link stays, and its target is replaced. A device, a pipe and what kgen prints to
    (/dev/stdout) are no files to replace: the data goes into them. Raises UsageError that names the
    path when it cannot be written, MachineTrouble for lack of space.
    """
    content = data.encode("utf-8") if isinstance(data, str) else data
    try:
        if not _write_into_special(path, content):
            target = Path(os.path.realpath(path))
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_file(target, content)
    except OSError as error:
        if lack := trouble_of(error):
            raise MachineTrouble(f"{path} cannot be written: {lack}") from None
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


def _write_into_special(path: Path, content: bytes) -> bool:
    """Write into what is no file of its own and return True, or return False. Raises OSError."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    if (stream := _stream(found)) is not None:
        sys.stdout.flush()
        # Opened anew by its path, a file would be written from its start, and a socket not at all.
        with os.fdopen(stream, "wb", closefd=False) as file:
            file.write(content)
    elif stat.S_ISREG(found.st_mode):
        return False
    else:
        path.write_bytes(content)
    return True


def _stream(found: os.stat_result) -> int | None:
    """Return the descriptor of the stream that this process prints to, if the path is one."""
    for number in (1, 2):
        with suppress(OSError):
            if os.path.samestat(found, os.fstat(number)):
                return number
    return None


def replace_file(path: Path, content: str | bytes) -> None:
    """Put `content` at `path`, in a folder that is there; a file keeps its owner and mode.

    Raises OSError.
    """
    temporary = path.with_name(f".writing.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
        with suppress(FileNotFoundError):
            _take_after(temporary, path.stat())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _take_after(path: Path, old: os.stat_result) -> None:
    with suppress(PermissionError):  # who is not root gives nothing away
        os.chown(path, old.st_uid, old.st_gid)
    path.chmod(stat.S_IMODE(old.st_mode))


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
