"""Writing files that a reader never sees half done."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from kgen.errors import UsageError


def write_atomically(path: Path, data: str | bytes) -> None:
    """Put `data` (text as UTF-8) at `path` in one step, making its folder when there is none.

    Raises UsageError that names the path when it cannot be written.
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
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
